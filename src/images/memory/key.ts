/**
 * Keys of what is remembered. An image has one key however it is spelled: the text of its `PullReference`, such as
 * `docker.io/library/nginx:1.25`, or by digest, which beats a tag. What a pod's pull secrets learned has the identity of
 * those credentials appended, so that it is found only by who presents them.
 *
 * Facts that come from an agent say that a pull secret learned them, but not which. They are kept under the identity of all
 * the credentials that were presented together; where that is one, it is the credential itself.
 *
 * What a node learned with credentials of the pod's service account is kept under the name of that account. So is a failure
 * that another service account might not have met, together with the identity of the presented pull credentials.
 */
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { ServiceAccountName } from '../../credentials/service-account.ts';

/** Identity of pull credentials or of a service account; the empty text is nobody's in particular: shared. */
export type Scope = string;

export const sharedScope: Scope = '';

/** Neither references nor credential ids hold a blank or a comma. */
const separator = ' ';

/** The key under which facts or failures of an image are kept for a scope. */
export function scopedKey(key: string, scope: Scope): string {
  return scope === sharedScope ? key : key + separator + scope;
}

/**
 * The identity of presented pull credentials. Their order does not count: a registry that accepts one of them is reached
 * with any order of them. Where there is one, its own id is the identity.
 */
export function scopeOf(credentials: readonly MatchedCredential[]): Scope {
  const [first] = credentials;
  if (first === undefined) return sharedScope;
  if (credentials.length === 1) return first.id;
  return [...new Set(credentials.map(({ id }) => id))].sort().join(',');
}

/**
 * A scope narrowed to one service account; without one, to those who name none. In the name of a service account is no
 * comma, in the identity of a credential no colon.
 */
export function withAccount(scope: Scope, account: ServiceAccountName | undefined): Scope {
  const own = `service-account:${account === undefined ? '' : `${account.namespace}/${account.name}`}`;
  return scope === sharedScope ? own : `${scope},${own}`;
}

/** The presented credentials that belong to a scope. */
export function within(
  credentials: readonly MatchedCredential[],
  scope: Scope,
): readonly MatchedCredential[] {
  if (scope === sharedScope) return [];
  const ids = new Set(scope.split(','));
  return credentials.filter(({ id }) => ids.has(id));
}
