/** Texts as Go reads them: durations, URLs and paths. */
import { posix } from 'node:path';
import { splitHostPath } from '../src/credentials/keyring/key.ts';

const unitsInMs: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** 2^63 ns: the largest duration in Go. */
const maxMs = 9_223_372_036_854.775;

// Each text matches in one way only: with `\d+\.?\d*`, 40 amounts took minutes.
// µ and μ are escaped: a Greek letter makes V8 keep the text of the whole bundle with two bytes a character.
const whole = /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$/;
const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g;

/** `time.ParseDuration`: milliseconds, also negative or fractional; `undefined` for Go's errors. */
export function parseGoDuration(text: string): number | undefined {
  if (/^[-+]?0$/.test(text)) return 0;
  if (!whole.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit = ''] of text.matchAll(part))
    ms += Number(amount) * (unitsInMs.get(unit) ?? Number.NaN);
  if (!(ms <= maxMs)) return undefined;
  return text.startsWith('-') ? -ms : ms;
}

export interface GoUrl {
  /** Lower case; empty for a URL without a scheme. */
  readonly scheme: string;
  /** Includes the port, as written. */
  readonly host: string;
  /** Percent escapes are decoded. */
  readonly path: string;
}

/** `url.Parse`, without user info, query and fragment; undefined if Go returns an error. */
export function parseGoUrl(text: string): GoUrl | undefined {
  const [, written = '', rest = text] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s.exec(text) ?? [];
  if (text.startsWith(':')) return undefined;
  const scheme = written.toLowerCase();
  if (rest.startsWith('//') && (scheme !== '' || !rest.startsWith('///'))) {
    const split = splitHostPath(rest.slice(2));
    return split && { scheme, ...split };
  }
  // With a leading slash, `splitHostPath` reads a path and checks its escapes and control characters.
  const split = splitHostPath(rest.startsWith('/') ? rest : `/${rest}`);
  if (split === undefined) return undefined;
  if (rest.startsWith('/')) return { scheme, host: '', path: split.path };
  // Without a slash, a scheme makes the rest opaque; without a scheme, Go refuses a colon in the first
  // segment.
  if (scheme !== '') return { scheme, host: '', path: '' };
  if (split.path.split('/', 2)[1]?.includes(':') === true) return undefined;
  return { scheme, host: '', path: split.path.slice(1) };
}

/** `path.Clean`. */
export function cleanPath(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/$/, '');
}
