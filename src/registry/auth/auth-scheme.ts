/** How to authenticate at an endpoint, remembered so that the next request needs no challenge. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import {
  InvalidChallenge,
  parseChallenges,
  repositoryScope,
  tokenOptions,
  tokenScopes,
} from './challenge.ts';
import { validateRealm } from './realm.ts';

export interface ChallengedRequest {
  readonly url: URL;
  readonly endpoint: Endpoint;
  readonly repository: string;
  readonly credential?: MatchedCredential | undefined;
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
  const verdict = validateRealm(realm, { host: url.host, insecure, ip: registryIp });
  if (!verdict.ok) throw new InvalidChallenge(verdict.reason);
  const named = scopes.filter((scope) => scope !== '');
  return {
    scheme: 'bearer',
    realm: verdict.url,
    service,
    scopes: tokenScopes([repositoryScope(repository)], named),
    ...(registryIp !== undefined && { registryIp }),
  };
}

/** Image references choose endpoints and repositories, so there could be any number. About 0.5 KiB each. */
const maxSchemes = 4096;

interface General {
  readonly scheme: AuthScheme;
  /** The challenged repository. */
  readonly repository: string;
}

/**
 * Schemes by endpoint and repository. One path of a registry may belong to an attacker and name any realm. So
 * a scheme serves another repository only if no credential can reach that realm: for anonymous requests, or
 * if the realm is the registry itself. The first such scheme stays until it fails for another repository, so
 * that an attacker cannot replace one that works.
 */
export class ChallengeCache {
  readonly #exact = new BoundedMap<string, AuthScheme>(maxSchemes);
  readonly #general = new BoundedMap<string, General>(maxSchemes);

  recall(request: ChallengedRequest): AuthScheme | undefined {
    const exact = this.#exact.get(exactKey(request));
    if (exact) return exact;
    const general = this.#general.get(baseOf(request))?.scheme;
    if (general?.scheme !== 'bearer') return general;
    if (request.credential && !isSameServer(request.url, general.realm)) return undefined;
    // Some registries require another scope than the path's; that scope holds for one repository only.
    return { ...general, scopes: [repositoryScope(request.repository)] };
  }

  learn(request: ChallengedRequest, scheme: AuthScheme): void {
    this.#exact.set(exactKey(request), scheme);
    const base = baseOf(request);
    const { repository } = request;
    const teacher = this.#general.peek(base)?.repository ?? repository;
    if (teacher === repository) this.#general.set(base, { scheme, repository });
  }

  /** The recalled scheme led to no access. One that was learned from another repository is forgotten. */
  failed(request: ChallengedRequest): void {
    if (!this.#exact.has(exactKey(request))) this.#general.delete(baseOf(request));
  }

  clear(): void {
    this.#exact.clear();
    this.#general.clear();
  }
}

/** Whether a realm is on the server of the request: same scheme, host and port. */
export function isSameServer(url: URL, realm: URL): boolean {
  return realm.host === url.host && realm.protocol === url.protocol;
}

function baseOf({ endpoint, url }: ChallengedRequest): string {
  return `${url.protocol} ${endpoint.base} ${endpoint.namespace}`;
}

function exactKey(request: ChallengedRequest): string {
  return `${baseOf(request)} ${request.repository}`;
}
