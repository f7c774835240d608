/**
 * Credential scopes: who may see facts or a failure. Shared facts, which a registry gives anonymously or for
 * a node's credentials, serve every pod. Others serve pods with the same pull credentials or the same service
 * account. An agent reports that a pull secret gave access, but not which one: such facts are kept for all
 * presented credentials together. A failure that another service account might not meet is kept for the
 * account and the pull credentials.
 */
import type { MatchedCredential, ServiceAccountName } from '../../credentials/credential.ts';
import type { ImageFacts, ImageRequest } from '../facts/facts.ts';
import { pullReference } from '../references/reference.ts';

export type Scope = string;

export const sharedScope: Scope = '';

/** References and credential ids have no blank and no comma. */
const separator = ' ';

/** The key of an image in any spelling: `docker.io/library/nginx:1.25`, or its digest, if named. */
export function keyOf({ reference }: Pick<ImageRequest, 'reference'>): string {
  return pullReference(reference).text;
}

export function scopedKey(key: string, scope: Scope): string {
  return scope === sharedScope ? key : key + separator + scope;
}

/** The scope of presented pull credentials. A registry accepts any of them, in any order. */
export function scopeOf(credentials: readonly MatchedCredential[]): Scope {
  const [first] = credentials;
  if (first === undefined) return sharedScope;
  if (credentials.length === 1) return first.id;
  return [...new Set(credentials.map(({ id }) => id))].sort().join(',');
}

/** A scope for one account, or for requests without one. Accounts have no comma, ids no colon. */
export function withAccount(scope: Scope, account: ServiceAccountName | undefined): Scope {
  const own = `service-account:${account === undefined ? '' : `${account.namespace}/${account.name}`}`;
  return scope === sharedScope ? own : `${scope},${own}`;
}

/** Whether facts or a failure hold only for pods of the request's service account. */
export function isPerAccount({ credentialSource }: ImageFacts): boolean {
  return credentialSource === 'service-account';
}

export function isSameAccount(a: ServiceAccountName | undefined, b: ServiceAccountName | undefined): boolean {
  return a?.namespace === b?.namespace && a?.name === b?.name;
}

export function scopeOfFailure(
  { pullCredentials, serviceAccount }: ImageRequest,
  perAccount: boolean,
): Scope {
  const scope = scopeOf(pullCredentials);
  return perAccount && serviceAccount ? withAccount(scope, serviceAccount) : scope;
}

/** The scope of facts; `undefined` if the credential that they depend on is not known. */
export function scopeOfFacts(
  { credentialSource }: ImageFacts,
  request: ImageRequest | undefined,
): Scope | undefined {
  if (credentialSource === 'service-account') {
    return request?.serviceAccount && withAccount(sharedScope, request.serviceAccount);
  }
  if (credentialSource !== 'pull-secret') return sharedScope;
  const scope = request ? scopeOf(request.pullCredentials) : sharedScope;
  return scope === sharedScope ? undefined : scope;
}

export function requestWithin(scope: Scope, request: ImageRequest): ImageRequest {
  const { serviceAccount, pullCredentials } = request;
  const ids = new Set(scope.split(','));
  const isOfAccount = serviceAccount !== undefined && scope === withAccount(sharedScope, serviceAccount);
  return {
    ...withoutCredentials(request),
    pullCredentials: pullCredentials.filter(({ id }) => ids.has(id)),
    ...(isOfAccount && { serviceAccount }),
  };
}

/** The request of a pod without pull secrets and service account; its facts can be shared. */
export function withoutCredentials(request: ImageRequest): ImageRequest {
  const { image, reference, pullPolicy, namespace, knownDigest } = request;
  return {
    image,
    reference,
    pullPolicy,
    pullCredentials: [],
    ...(namespace !== undefined && { namespace }),
    ...(knownDigest !== undefined && { knownDigest }),
  };
}
