/**
 * Image references, parsed and normalized as the kubelet and containerd do: both use distribution/reference,
 * so one parser serves for the credential key (`repository`), for the registry namespace (`domain`), for the
 * object in the registry and for the key in memory (`text`).
 */
import { BoundedMap } from '../../async/bounded-map.ts';

export interface Reference {
  /** Registry domain, such as `docker.io` or `localhost:5000`. It is also containerd's namespace. */
  readonly domain: string;
  /** Path of the repository, such as `library/nginx`. */
  readonly path: string;
  /** `domain/path`: the key for credentials. */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
  /** What is pulled, and follows `/manifests/` in a request: the digest if there is one, else the tag. */
  readonly object: string;
  /** Repository and object as one text, such as `docker.io/library/nginx:latest` (ParseDockerRef). */
  readonly text: string;
}

/**
 * Limit of what others send; longer texts are not cached. A host name has at most 253 characters, a path 255, a
 * tag 128, a digest 135.
 */
export const maxImageLength = 1024;

export const defaultDomain = 'docker.io';
export const defaultTag = 'latest';
export const legacyDefaultDomain = 'index.docker.io';
const officialPrefix = 'library/';
const identifierPattern = /^[a-f0-9]{64}$/;

/**
 * Parses an image as a pod writes it and fills in what is not written (`docker.io`, `library/`). Tag and
 * digest are both kept.
 * @throws InvalidReference if the kubelet would report InvalidImageName
 */
export function parseReference(text: string): Reference {
  const { domain: written, path: rest, tag, digest } = parseNormalized(text);
  // `a_b.c/d` has no domain in the grammar, but containerd contacts the part before the first slash.
  const repository = written === '' ? rest : `${written}/${rest}`;
  const slash = repository.indexOf('/');
  const [domain, path] = [repository.slice(0, slash), repository.slice(slash + 1)];
  const object = digest ?? tag ?? defaultTag;
  const whole = digest === undefined ? `${repository}:${object}` : `${repository}@${object}`;
  return {
    domain,
    path,
    repository,
    ...(tag !== undefined && { tag }),
    ...(digest !== undefined && { digest }),
    object,
    text: whole,
  };
}

/** `undefined` for a text that is no reference. @param parse such as a cache */
export function validReference(text: string, parse = parseReference): Reference | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof InvalidReference) return undefined;
    throw error;
  }
}

/**
 * The name without tag and digest, as written, if it names no registry for CRI-O (go.podman.io/image
 * pkg/shortnames `IsShortName`): `nginx`, `team/app`, and also `MYREG/app`, which names one for containerd.
 * @throws InvalidReference
 */
export function shortNameOf(image: string): string | undefined {
  const { domain, path } = parseStrictReference(image);
  if (/[.:]/.test(domain) || domain === 'localhost') return undefined;
  return domain === '' ? path : `${domain}/${path}`;
}

/** ParseNormalizedNamed; an impossible domain (`a_b.c/d`) is returned empty. @throws InvalidReference */
export function parseNormalized(text: string): WrittenReference {
  checkLength(text);
  if (identifierPattern.test(text)) {
    throw new InvalidReference(
      `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`,
    );
  }
  const { domain, rest } = splitDomain(text);
  const colon = rest.indexOf(':');
  const remote = colon < 0 ? rest : rest.slice(0, colon);
  if (remote.toLowerCase() !== remote) {
    throw new InvalidReference(`invalid reference format: repository name (${remote}) must be lowercase`);
  }
  return parseStrictReference(`${domain}/${rest}`);
}

/** Splits at the first slash if a registry precedes it (splitDockerDomain in `normalize.go`). */
function splitDomain(text: string): { domain: string; rest: string } {
  const slash = text.indexOf('/');
  if (slash < 0) return { domain: defaultDomain, rest: officialPrefix + text };
  const head = text.slice(0, slash);
  const tail = text.slice(slash + 1);
  if (!looksLikeDomain(head)) return { domain: defaultDomain, rest: text };
  const domain = head === legacyDefaultDomain ? defaultDomain : head;
  const bare = domain === defaultDomain && !tail.includes('/');
  return { domain, rest: bare ? officialPrefix + tail : tail };
}

function looksLikeDomain(head: string): boolean {
  return head === 'localhost' || head.includes('.') || head.includes(':') || head.toLowerCase() !== head;
}

/** A large cluster uses so many images at a time; about 2 MiB. */
const maxCached = 4096;

/** A `parseReference` that remembers, so that an image that is used again and again is parsed once. */
export function createReferenceCache(): (image: string) => Reference {
  const parsed = new BoundedMap<string, Reference>(maxCached);
  return (image) => {
    // The oldest leave first: noting each use would cost the warm path more than parsing again.
    const known = parsed.peek(image);
    if (known) return known;
    const reference = parseReference(image);
    if (image.length <= maxImageLength) parsed.set(image, reference);
    return reference;
  };
}

/** A parsed text. The domain is empty if it was not written, or if the grammar cannot express it. */
export interface WrittenReference {
  readonly domain: string;
  readonly path: string;
  readonly tag?: string;
  readonly digest?: string;
}

/** Path without domain; older releases of distribution/reference counted the domain too. */
const maxPathLength = 255;

/**
 * The longest reference that can be pulled has about 780 characters: a DNS name of 253 with port, a path of
 * 255, a tag of 128 and a sha512 digest of 135. A longer text only costs memory.
 */
const maxReferenceLength = 4096;

const domainPattern =
  /^(?:[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*(?:\.[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$/;
const pathPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const digestPattern = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;

/**
 * Parses a text by the grammar of references, and adds nothing, such as `docker.io`: `[domain/]path[:tag][@digest]`. Source:
 * distribution/reference `regexp.go` and `Parse` in `reference.go`. A slash can only stand in the name, an
 * `@` only before the digest and a colon after the last slash only before the tag, so the text is first cut
 * there and each piece is then checked by itself; each pattern has only one way to match a piece, so that
 * none can backtrack over a long text.
 * @param algorithms of digests
 * @throws InvalidReference
 */
export function parseStrictReference(text: string, algorithms?: readonly string[]): WrittenReference {
  if (text === '') throw new InvalidReference('repository name must have at least one component');
  checkLength(text);
  const found = cut(text);
  if (found === undefined) {
    const lower = text.toLowerCase();
    throw new InvalidReference(
      lower !== text && cut(lower) !== undefined
        ? 'repository name must be lowercase'
        : 'invalid reference format',
    );
  }
  if (found.path.length > maxPathLength) {
    throw new InvalidReference(`repository name must not be more than ${maxPathLength} characters`);
  }
  if (found.digest !== undefined) checkDigest(found.digest, algorithms);
  return found;
}

/** @throws InvalidReference, before anything is searched or quoted */
function checkLength(text: string): void {
  if (text.length > maxReferenceLength) {
    throw new InvalidReference(`invalid reference format: longer than ${maxReferenceLength} characters`);
  }
}

function cut(text: string): WrittenReference | undefined {
  const at = text.indexOf('@');
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !digestPattern.test(digest)) return undefined;

  const undigested = at < 0 ? text : text.slice(0, at);
  const colon = undigested.indexOf(':', undigested.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : undigested.slice(colon + 1);
  if (tag !== undefined && !tagPattern.test(tag)) return undefined;

  const name = splitName(colon < 0 ? undigested : undigested.slice(0, colon));
  if (name === undefined) return undefined;
  return { ...name, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) };
}

function splitName(name: string): { domain: string; path: string } | undefined {
  const slash = name.indexOf('/');
  if (slash >= 0 && domainPattern.test(name.slice(0, slash))) {
    const path = name.slice(slash + 1);
    if (pathPattern.test(path)) return { domain: name.slice(0, slash), path };
  }
  return pathPattern.test(name) ? { domain: '', path: name } : undefined;
}

/** Both the kubelet and containerd link exactly these three. */
const hexLengths: ReadonlyMap<string, number> = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
]);

/** How go-digest writes any digest, known algorithm or not. */
const wellFormed = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/;
const lowerHex = /^[a-f0-9]+$/;

/** Checks a digest of `digestPattern` as opencontainers/go-digest does. @throws InvalidReference in its words */
function checkDigest(text: string, known: readonly string[] = [...hexLengths.keys()]): void {
  const [algorithm = '', hex = ''] = text.split(':');
  const length = hexLengths.get(algorithm);
  if (length === undefined || !known.includes(algorithm)) {
    throw new InvalidReference(
      wellFormed.test(text) ? 'unsupported digest algorithm' : 'invalid checksum digest format',
    );
  }
  if (hex.length !== length) throw new InvalidReference('invalid checksum digest length');
  if (!lowerHex.test(hex)) throw new InvalidReference('invalid checksum digest format');
}

/**
 * An image reference that the kubelet refuses too (`InvalidImageName`): the pod can never pull it. The message is
 * the one of distribution/reference, as in the kubelet's event.
 */
export class InvalidReference extends Error {
  override readonly name = 'InvalidReference';
}
