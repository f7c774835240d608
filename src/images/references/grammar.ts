/**
 * The grammar of references, without any defaulting: `[domain/]path[:tag][@digest]`. Source:
 * distribution/reference `regexp.go` and `Parse` in `reference.go`. A slash can only stand in the name, an
 * `@` only before the digest and a colon after the last slash only before the tag, so the text is first cut
 * there and each piece is then checked by itself; each pattern has only one way to match a piece, so that
 * none can backtrack over a long text.
 */

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

/** Adds nothing, such as `docker.io`. @param algorithms of digests @throws InvalidReference */
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
export function checkLength(text: string): void {
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

/** Checks a digest as opencontainers/go-digest does. @throws InvalidReference in its words */
export function checkDigest(text: string, known: readonly string[] = [...hexLengths.keys()]): void {
  const colon = text.indexOf(':');
  if (colon <= 0 || colon + 1 === text.length) throw new InvalidReference('invalid checksum digest format');
  const algorithm = text.slice(0, colon);
  const length = hexLengths.get(algorithm);
  if (length === undefined || !known.includes(algorithm)) {
    throw new InvalidReference(
      wellFormed.test(text) ? 'unsupported digest algorithm' : 'invalid checksum digest format',
    );
  }
  const hex = text.slice(colon + 1);
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
