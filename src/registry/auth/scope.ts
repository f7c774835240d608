/**
 * The parameters of a token request: scopes of the repository and of the challenge, realm and service. Source: containerd `core/remotes/docker/scope.go` and `auth/fetch.go`; distribution `spec/auth/scope.md`.
 */
import type { Challenge } from './challenge.ts';

/** The token server as a Bearer challenge names it. Not trusted: `realm.ts` validates the realm before anything is sent. */
export interface TokenOptions {
  /** Absolute URL of the token server, as written. */
  readonly realm: string;
  /** Empty where the challenge names none. */
  readonly service: string;
  readonly scopes: readonly string[];
}

/** A Bearer challenge that leads to no token. */
export class InvalidChallenge extends Error {
  readonly code = 'invalid-challenge';
  readonly temporary = false;
  constructor(message: string) {
    super(message);
    this.name = 'InvalidChallenge';
  }
}

/**
 * The scope for reading, or writing, one repository.
 * @param path of the repository without its domain, such as `library/nginx`
 */
export function repositoryScope(path: string, push = false): string {
  return `repository:${path}:${push ? 'pull,push' : 'pull'}`;
}

/**
 * The scopes to request, sorted and without exact duplicates. Actions are not merged: `…:pull` and `…:pull,push` stay two
 * scopes, as in containerd.
 * @param wanted scopes of the request itself
 * @param challenged scopes in the challenge
 */
export function tokenScopes(wanted: readonly string[], challenged: readonly string[]): string[] {
  return [...new Set([...wanted, ...challenged])].sort();
}

/**
 * Reads the token request out of a Bearer challenge.
 * @throws InvalidChallenge if the realm is missing or not an absolute URL
 */
export function tokenOptions(challenge: Pick<Challenge, 'parameters'>): TokenOptions {
  const { parameters } = challenge;
  const realm = parameters.get('realm');
  if (realm === undefined) throw new InvalidChallenge('the Bearer challenge names no realm');
  if (!URL.canParse(realm) || new URL(realm).host === '') {
    throw new InvalidChallenge('the realm of the Bearer challenge is not an absolute URL');
  }
  const scope = parameters.get('scope');
  return {
    realm,
    service: parameters.get('service') ?? '',
    // A scope that is present but empty is one empty scope, as in containerd.
    scopes: scope === undefined ? [] : scope.split(' '),
  };
}

export function sameScopes(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((scope, index) => scope === other[index]);
}
