/**
 * Credential scopes: who may see an entry. Facts that a registry gives anonymously or for a node's credentials
 * serve every pod. Others serve pods with the same pull credentials and, if nodes use it, service account.
 */
import type { ImageRequest } from '../facts/facts.ts';

export const sharedScope = '';

/**
 * The key of an image in any spelling: `docker.io/library/nginx:1.25`, or its digest, if named. A short name
 * that nodes resolve by themselves has its own key, with a blank: its facts are not passed on, because
 * another node may resolve it in another way.
 */
export function keyOf({ reference, shortName }: Pick<ImageRequest, 'reference' | 'shortName'>): string {
  const { text, repository } = reference;
  return shortName === undefined ? text : `short-name ${shortName}${text.slice(repository.length)}`;
}

/** References and credential ids have no blank and no comma. */
export function scopedKey(key: string, scope: string): string {
  return scope === sharedScope ? key : `${key} ${scope}`;
}

/** The scope of a request. A registry accepts any of its credentials, in any order. */
export function scopeOf({
  pullCredentials,
  serviceAccount: account,
}: Pick<ImageRequest, 'pullCredentials' | 'serviceAccount'>): string {
  if (pullCredentials.length === 0 && account === undefined) return sharedScope;
  const ids = [...new Set(pullCredentials.map(({ id }) => id))].sort();
  // Ids have no colon.
  if (account !== undefined) ids.push(`service-account:${account.namespace}/${account.name}`);
  return ids.join(',');
}

/** The request of a pod without pull secrets and service account; its facts can be shared. */
export function withoutCredentials(ofPod: ImageRequest): ImageRequest {
  const { serviceAccount: _, ...request } = ofPod;
  return { ...request, pullCredentials: [] };
}

/** Namespaces wait for their own places, and an agent's answer depends on the age. */
export function keyOfLookup(request: ImageRequest): string {
  const { namespace = '', maxAgeMs } = request;
  return [keyOf(request), scopeOf(request), namespace, maxAgeMs].join(' ');
}
