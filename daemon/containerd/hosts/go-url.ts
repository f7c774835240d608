/** Just as much of Go's `net/url` as containerd needs: scheme, host and path of what is written in its files. */
import { splitHostPath, type HostPath } from '../../../src/credentials/keyring/key.ts';

export interface GoUrl {
  /** In lower case; empty where there is none. */
  readonly scheme: string;
  /** With its port, as written. */
  readonly host: string;
  /** Percent escapes are decoded. */
  readonly path: string;
}

/**
 * `url.Parse`. User info, query and fragment are left out.
 * @returns undefined where Go gives an error
 */
export function parseGoUrl(text: string): GoUrl | undefined {
  const [, written = '', rest = text] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s.exec(text) ?? [];
  if (text.startsWith(':')) return undefined;
  const scheme = written.toLowerCase();
  if (rest.startsWith('//') && (scheme !== '' || !rest.startsWith('///'))) {
    // The splitter knows no zones, which no image reference can have.
    const [, before, zone] = /^([^/?#]*\[[^\]/?#%]*)%25([^\]/?#%]+)(?=\])/.exec(rest.slice(2)) ?? [];
    if (before === undefined || zone === undefined) return withScheme(scheme, splitHostPath(rest.slice(2)));
    const split = splitHostPath(before + rest.slice(2 + before.length + '%25'.length + zone.length));
    return withScheme(scheme, split && { ...split, host: split.host.replace(']', `%${zone}]`) });
  }
  // A slash in front makes it a path for the splitter, which then checks escapes and control characters.
  const split = splitHostPath(rest.startsWith('/') ? rest : `/${rest}`);
  if (split === undefined) return undefined;
  if (rest.startsWith('/')) return { scheme, host: '', path: split.path };
  // Without a slash, what follows a scheme is opaque; without a scheme, a colon would look like one.
  if (scheme !== '') return { scheme, host: '', path: '' };
  if (split.path.split('/', 2)[1]?.includes(':') === true) return undefined;
  return { scheme, host: '', path: split.path.slice(1) };
}

function withScheme(scheme: string, split: HostPath | undefined): GoUrl | undefined {
  return split && { scheme, ...split };
}

/** Go's `path.Clean`. */
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
