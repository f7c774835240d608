/**
 * What endpoints want to see: the best challenge of a 401, validated, and remembered so that the next request brings along
 * what is wanted.
 */
import { parseChallenges } from './challenge.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { validateRealm } from './realm.ts';
import { InvalidChallenge, repositoryScope, tokenOptions, tokenScopes } from './scope.ts';

/** Image references choose endpoints and repositories, so there could be any number. */
const maxRemembered = 1000;

/** What was asked. */
export interface Asked {
  readonly url: URL;
  readonly endpoint: Endpoint;
  readonly repository: string;
}

export interface BearerScheme {
  readonly scheme: 'bearer';
  readonly realm: URL;
  readonly service: string;
  readonly scopes: readonly string[];
  /** Where the endpoint was reached, which bounds how near its realm may be. */
  readonly registryIp?: string;
}
export type AuthScheme = { readonly scheme: 'basic' } | BearerScheme;

export interface ChallengeCache {
  recall(asked: Asked): AuthScheme | undefined;
  learn(asked: Asked, wish: AuthScheme): void;
  clear(): void;
}

export function createChallengeCache(): ChallengeCache {
  const wishes = new Map<string, AuthScheme>();

  function remember(key: string, wish: AuthScheme): void {
    wishes.delete(key);
    wishes.set(key, wish);
    const oldest = wishes.keys().next();
    if (wishes.size > maxRemembered && !oldest.done) wishes.delete(oldest.value);
  }

  return {
    recall: (asked) => {
      const base = baseOf(asked);
      const exact = wishes.get(`${base} ${asked.repository}`);
      if (exact) return exact;
      const general = wishes.get(base);
      return general?.scheme === 'bearer' ? { ...general, scopes: ownScopes(asked) } : general;
    },
    learn: (asked, wish) => {
      const base = baseOf(asked);
      remember(base, wish);
      // Some registries want another scope than the one that follows from the path; that holds for one repository only.
      const exact = `${base} ${asked.repository}`;
      if (wish.scheme === 'bearer' && !sameScopes(wish.scopes, ownScopes(asked))) remember(exact, wish);
      else wishes.delete(exact);
    },
    clear: () => wishes.clear(),
  };
}

/**
 * The best challenge of a 401 that can be answered.
 * @param lines the `WWW-Authenticate` header lines
 * @param registryIp where the answer came from; undefined through a proxy
 * @throws InvalidChallenge where it is Bearer with a realm that is none, or that may not be asked
 */
export function authSchemeOf(
  asked: Asked,
  lines: readonly string[],
  registryIp: string | undefined,
): AuthScheme | undefined {
  const challenge = parseChallenges(lines).find(({ scheme }) => scheme !== 'digest');
  if (!challenge) return undefined;
  if (challenge.scheme === 'basic') return { scheme: 'basic' };
  const options = tokenOptions(challenge);
  const insecure = asked.url.protocol === 'http:';
  const verdict = validateRealm(options.realm, { host: asked.url.host, insecure, ip: registryIp });
  if (!verdict.ok) throw new InvalidChallenge(verdict.reason);
  const named = options.scopes.filter((scope) => scope !== '');
  return {
    scheme: 'bearer',
    realm: verdict.url,
    service: options.service,
    scopes: tokenScopes(ownScopes(asked), named),
    ...(registryIp === undefined ? {} : { registryIp }),
  };
}

export function sameScopes(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((scope, index) => scope === other[index]);
}

function baseOf({ endpoint, url }: Asked): string {
  return `${url.protocol} ${endpoint.base} ${endpoint.namespace}`;
}

function ownScopes({ repository }: Asked): string[] {
  return [repositoryScope(repository)];
}
