/**
 * Forms of references that archwright itself does not need (distribution/reference `normalize.go`,
 * `helpers.go`). The upstream vectors check them together with the parser.
 */
import { type WrittenReference, parseNormalized } from '../../../src/images/references/reference.ts';
import { isDigest } from '../../../src/registry/manifests/manifest.ts';

const defaultDomain = 'docker.io';
/** An identifier of content; distribution/reference `regexp.go`. */
const identifierPattern = /^[a-f0-9]{64}$/;
const officialPrefix = 'library/';

/**
 * ParseAnyReference: also accepts a bare digest or 64 hexadecimal digits, which name content, not a
 * repository. Not for pulls; pods may have such texts in their status.
 * @throws InvalidReference
 */
export function parseAnyReference(text: string): WrittenReference {
  if (identifierPattern.test(text)) return { domain: '', path: '', digest: `sha256:${text}` };
  if (isDigest(text)) return { domain: '', path: '', digest: text };
  return parseNormalized(text);
}

/** The full text of a reference: `domain/path[:tag][@digest]`. */
export function formatReference(reference: WrittenReference): string {
  const { domain, path, tag, digest } = reference;
  if (path === '') return digest ?? '';
  const name = domain === '' ? path : `${domain}/${path}`;
  return `${name}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/** The name as people write it: without `docker.io/`, and without `library/` before a name of one component. */
export function familiarName(reference: { readonly domain: string; readonly path: string }): string {
  const { domain, path } = reference;
  if (domain === '') return path;
  if (domain !== defaultDomain) return `${domain}/${path}`;
  const official = path.startsWith(officialPrefix) && !path.includes('/', officialPrefix.length);
  return official ? path.slice(officialPrefix.length) : path;
}
