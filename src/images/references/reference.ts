/**
 * Image references, parsed and normalized as the kubelet and containerd do: both use distribution/reference,
 * so one parser serves for the credential key (`repository`), for the registry namespace (`domain`), for the
 * object in the registry and for the key in memory (`text`).
 */
import { InvalidReference, checkLength, parseStrictReference, type WrittenReference } from './grammar.ts';
import { BoundedMap } from '../../async/bounded-map.ts';

export { InvalidReference } from './grammar.ts';

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

export const defaultDomain = 'docker.io';
export const defaultTag = 'latest';
const legacyDefaultDomain = 'index.docker.io';
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

/** As many images as a large cluster uses at a time; about 2 MiB. */
const usualSize = 4096;

/** Longer texts are not cached. A path has up to 255 characters, a tag 128, a digest 135. */
export const maxCachedLength = 1024;

/** A `parseReference` that remembers, so that an image that is used again and again is parsed once. */
export function createReferenceCache(size = usualSize): (image: string) => Reference {
  const parsed = new BoundedMap<string, Reference>(size);
  return (image) => {
    // The oldest leave first: noting each use would cost the warm path more than parsing again.
    const known = parsed.peek(image);
    if (known) return known;
    const reference = parseReference(image);
    if (image.length <= maxCachedLength) parsed.set(image, reference);
    return reference;
  };
}
