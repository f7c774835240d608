/**
 * What a failed plugin wrote to its standard error, made fit for a message: one line of printable text, of bounded length, without
 * what looks like a credential. Known secrets are taken out by the log too; a plugin can print some that nobody told us of.
 */
import { scrub } from '../../../src/telemetry/scrub.ts';

/** A line of a log, not a report. */
const maxLength = 1000;

const replacement = '[secret]';

const looksSecret: readonly RegExp[] = [
  // Authorization headers, and schemes wherever they stand.
  /\b(?:basic|bearer)\s+[^\s"',;]+/gi,
  // password=…, "token": "…", --secret …: the value.
  /(?<=(?:passw(?:or)?d|passwd|pwd|secret|token|credentials?|authorization|api[-_]?key|access[-_]?key|session)[\w-]*["']?\s*[:=]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;}"']+)/gi,
  // https://user:password@host
  /(?<=:\/\/)[^\s/@]+@/g,
  // JSON web tokens.
  /\beyJ[\w-]+(?:\.[\w-]*)*/g,
  // Long runs of letters in both cases and digits: keys and tokens, seldom paths or names.
  /(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*\d)[\w+/=-]{20,}/g,
];

/** @param bytes the beginning of what was written */
export function describeStderr(bytes: Buffer): string {
  const text = bytes
    .toString('utf8')
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, '')
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+/gu, ' ')
    .trim();
  let clean = scrub(text);
  for (const pattern of looksSecret) clean = clean.replaceAll(pattern, replacement);
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}…` : clean;
}
