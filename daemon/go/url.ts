/** The part of Go's `net/url` and `path` that containerd's files need: scheme, host and path. */
import { splitHostPath, type HostPath } from '../../src/credentials/keyring/key.ts';

export interface GoUrl {
  /** Lower case; empty for a URL without a scheme. */
  readonly scheme: string;
  /** With its port, as written. */
  readonly host: string;
  /** With percent escapes decoded. */
  readonly path: string;
}

/**
 * `url.Parse`, without user info, query and fragment.
 * @returns undefined if Go returns an error
 */
export function parseGoUrl(text: string): GoUrl | undefined {
  const [, written = '', rest = text] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s.exec(text) ?? [];
  if (text.startsWith(':')) return undefined;
  const scheme = written.toLowerCase();
  if (rest.startsWith('//') && (scheme !== '' || !rest.startsWith('///'))) {
    // `splitHostPath` refuses IPv6 zones, which image references cannot have.
    const [, before, zone] = /^([^/?#]*\[[^\]/?#%]*)%25([^\]/?#%]+)(?=\])/.exec(rest.slice(2)) ?? [];
    if (before === undefined || zone === undefined) return withScheme(scheme, splitHostPath(rest.slice(2)));
    const split = splitHostPath(before + rest.slice(2 + before.length + '%25'.length + zone.length));
    return withScheme(scheme, split && { ...split, host: split.host.replace(']', `%${zone}]`) });
  }
  // With a leading slash, `splitHostPath` reads a path and checks its escapes and control characters.
  const split = splitHostPath(rest.startsWith('/') ? rest : `/${rest}`);
  if (split === undefined) return undefined;
  if (rest.startsWith('/')) return { scheme, host: '', path: split.path };
  // Without a slash, the text after a scheme is opaque. Without a scheme, Go refuses a colon in the first segment.
  if (scheme !== '') return { scheme, host: '', path: '' };
  if (split.path.split('/', 2)[1]?.includes(':') === true) return undefined;
  return { scheme, host: '', path: split.path.slice(1) };
}

function withScheme(scheme: string, split: HostPath | undefined): GoUrl | undefined {
  return split && { scheme, ...split };
}

/** `path.Clean`. */
export function cleanPath(path: string): string {
  const kept: string[] = [];
  const rooted = path.startsWith('/');
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..' && kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (part !== '..' || !rooted) kept.push(part);
  }
  const joined = kept.join('/');
  if (rooted) return `/${joined}`;
  return joined === '' ? '.' : joined;
}
