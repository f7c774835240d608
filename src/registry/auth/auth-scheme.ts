/**
 * How to authenticate for a repository, by the challenge of an endpoint. Scopes: containerd
 * `core/remotes/docker/scope.go`, distribution `spec/auth/scope.md`.
 */
import type { EndpointRequest } from '../net/guarded-client.ts';
import { parseChallenges } from './challenge.ts';
import { validateRealm } from './realm.ts';

export interface BearerScheme {
  readonly scheme: 'bearer';
  readonly realm: URL;
  /** Empty if the challenge names none. */
  readonly service: string;
  /** Sorted and distinct. */
  readonly scopes: readonly string[];
  /** Address of the endpoint, which limits the addresses of its realm; absent behind a proxy. */
  readonly registryIp?: string;
}
export type AuthScheme = { readonly scheme: 'basic' } | BearerScheme;

/**
 * The best challenge of a 401 that this client can answer. @param lines of `WWW-Authenticate`
 * @param registryIp address that sent the response; undefined behind a proxy
 * @throws InvalidChallenge for a Bearer challenge without an allowed realm
 */
export function authSchemeOf(
  { url, repository }: Pick<EndpointRequest, 'url' | 'repository'>,
  lines: readonly string[],
  registryIp: string | undefined,
): AuthScheme | undefined {
  const challenge = parseChallenges(lines).find(({ scheme }) => scheme !== 'digest');
  if (!challenge) return undefined;
  if (challenge.scheme === 'basic') return { scheme: 'basic' };
  const { parameters } = challenge;
  const named = (parameters.get('scope') ?? '').split(' ').filter((scope) => scope !== '');
  return {
    scheme: 'bearer',
    realm: validateRealm(parameters.get('realm'), url, registryIp),
    service: parameters.get('service') ?? '',
    // As in containerd, `pull` and `pull,push` are not merged.
    scopes: [...new Set([`repository:${repository}:pull`, ...named])].sort(),
    ...(registryIp !== undefined && { registryIp }),
  };
}

/** Whether a realm is on the server of the request: same scheme, host and port. */
export function isSameServer(url: URL, realm: URL): boolean {
  return realm.host === url.host && realm.protocol === url.protocol;
}
