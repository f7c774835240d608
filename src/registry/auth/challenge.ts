/**
 * How to authenticate for a repository, by the challenges of a 401 response. Challenges are read as by containerd
 * (`core/remotes/docker/auth/parse.go`): only the first one of each `WWW-Authenticate` line counts, schemes other
 * than Bearer, Digest and Basic are ignored, and the best scheme comes first. Every line is read once, left to
 * right. Scopes: containerd `core/remotes/docker/scope.go`, distribution `spec/auth/scope.md`.
 *
 * The guard for realms: a registry chooses which host receives the credential that it would receive itself.
 * containerd has no rule here; go-containerregistry (`pkg/v1/remote/transport/bearer.go`) requires the registry's
 * last two labels. A realm holds only for the repository that named it (`authenticator.ts`). It is https, or http if
 * the registry itself was requested by http. Its address may not be nearer than the registry's own
 * (`isForbiddenAddress`). Literals are checked here as Node will dial them, so that `https://2130706433/` counts as
 * 127.0.0.1. Names are checked after resolution (`reach.ts`), but behind a proxy, which resolves them itself, only
 * the names below.
 */
import { addressKind, bareHost, isForbiddenAddress, portOf } from '../../http/reach/address.ts';

/** A Bearer challenge that leads to no token. */
export class InvalidChallenge extends Error {
  override readonly name = 'InvalidChallenge';
}

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
  { url, repository }: { readonly url: URL; readonly repository: string },
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

/** The best scheme first. */
const schemes = ['bearer', 'digest', 'basic'] as const;

interface Challenge {
  readonly scheme: (typeof schemes)[number];
  /** Names in lower case; the last one of a repeated name wins. Values as the server wrote them. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** A token of RFC 2616, section 2.2: visible ASCII without separators. */
const tokenPattern = /[!#$%&'*+\-.^_`|~0-9A-Za-z]*/y;
const spacePattern = /[ \t\r\n]*/y;
const quotedPattern = /"(?:[^"\\]|\\[^])*"/y;

/** @param lines of one response, not joined with commas @returns Bearer before Digest before Basic */
export function parseChallenges(lines: readonly string[]): Challenge[] {
  const challenges = lines.flatMap((line) => {
    const name = match(tokenPattern, line, 0).toLowerCase();
    const scheme = schemes.find((known) => known === name);
    return scheme ? [{ scheme, parameters: parseParameters(line, scheme.length) }] : [];
  });
  return challenges.sort((a, b) => schemes.indexOf(a.scheme) - schemes.indexOf(b.scheme));
}

function parseParameters(line: string, start: number): Map<string, string> {
  const parameters = new Map<string, string>();
  let position = start;
  for (;;) {
    position += match(spacePattern, line, position).length;
    const name = match(tokenPattern, line, position);
    position += name.length;
    if (name === '' || line[position] !== '=') return parameters;
    const value = parseValue(line, position + 1);
    parameters.set(name.toLowerCase(), value.text);
    position = value.end + match(spacePattern, line, value.end).length;
    if (line[position] !== ',') return parameters;
    position += 1;
  }
}

/** A token, or a quoted string with backslash escapes. An unterminated string is empty and the last. */
function parseValue(line: string, start: number): { text: string; end: number } {
  if (line[start] !== '"') {
    const text = match(tokenPattern, line, start);
    return { text, end: start + text.length };
  }
  const quoted = match(quotedPattern, line, start);
  if (quoted === '') return { text: '', end: line.length };
  return { text: quoted.slice(1, -1).replaceAll(/\\([^])/g, '$1'), end: start + quoted.length };
}

function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** Names that lead to this machine, or to a cloud's metadata service, without an IP literal. */
const loopbackNames = /^(?:.*\.)?localhost\.?$/;
const metadataNames = /^(?:metadata|metadata\.google\.internal|instance-data(?:\.ec2\.internal)?)\.?$/;

/**
 * @param registry URL of the request; http only by configuration
 * @param registryIp unknown behind a proxy, and then it counts as public
 * @returns the URL of the realm @throws InvalidChallenge; its message holds at most the host
 */
export function validateRealm(realm: string | undefined, registry: URL, registryIp?: string): URL {
  if (realm === undefined) throw new InvalidChallenge('the Bearer challenge names no realm');
  const url = URL.parse(realm);
  if (!url) throw new InvalidChallenge('the realm is not an absolute URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new InvalidChallenge('the realm is neither https nor http');
  if (url.protocol === 'http:' && registry.protocol === 'https:')
    throw new InvalidChallenge('the realm is http, but the registry uses https');
  if (url.username !== '' || url.password !== '') {
    throw new InvalidChallenge('the realm holds a user name or password');
  }
  const host = bareHost(url);
  if (host === bareHost(registry) && portOf(url) === portOf(registry)) return url;

  const kind = addressKind(host);
  if (kind !== undefined && isForbiddenAddress(host, registryIp)) {
    throw new InvalidChallenge(`the realm's host ${host} is a ${kind} address and not the registry itself`);
  }
  const registryIsHere = registryIp !== undefined && addressKind(registryIp) === 'loopback';
  if (metadataNames.test(host) || (loopbackNames.test(host) && !registryIsHere)) {
    throw new InvalidChallenge(`the realm's host ${host} names this machine or a metadata service`);
  }
  return url;
}
