/** How to authenticate for a repository, by the challenge of an endpoint. */
import { parseChallenges, repositoryScope, tokenOptions, tokenScopes } from './challenge.ts';
import { validateRealm } from './realm.ts';

export interface ChallengedRequest {
  readonly url: URL;
  readonly repository: string;
}

export interface BearerScheme {
  readonly scheme: 'bearer';
  readonly realm: URL;
  readonly service: string;
  readonly scopes: readonly string[];
  /** Address of the endpoint, which limits the addresses of its realm; absent behind a proxy. */
  readonly registryIp?: string;
}
export type AuthScheme = { readonly scheme: 'basic' } | BearerScheme;

/**
 * The best challenge of a 401 that this client can answer.
 * @param lines the `WWW-Authenticate` header lines
 * @param registryIp address that sent the response; undefined behind a proxy
 * @throws InvalidChallenge for a Bearer challenge without an allowed realm
 */
export function authSchemeOf(
  { url, repository }: ChallengedRequest,
  lines: readonly string[],
  registryIp: string | undefined,
): AuthScheme | undefined {
  const challenge = parseChallenges(lines).find(({ scheme }) => scheme !== 'digest');
  if (!challenge) return undefined;
  if (challenge.scheme === 'basic') return { scheme: 'basic' };
  const { realm, service, scopes } = tokenOptions(challenge);
  const insecure = url.protocol === 'http:';
  const named = scopes.filter((scope) => scope !== '');
  return {
    scheme: 'bearer',
    realm: validateRealm(realm, { host: url.host, insecure, ip: registryIp }),
    service,
    scopes: tokenScopes([repositoryScope(repository)], named),
    ...(registryIp !== undefined && { registryIp }),
  };
}

/** Whether a realm is on the server of the request: same scheme, host and port. */
export function isSameServer(url: URL, realm: URL): boolean {
  return realm.host === url.host && realm.protocol === url.protocol;
}
