/**
 * The standard error of a failed plugin as a message: one line of printable text, of limited length, without known secrets and texts
 * that look like credentials, because a plugin may print secrets that the agent does not know.
 */
import { scrub } from '../../../src/telemetry/scrub.ts';

/** Enough for a log line. */
const maxLength = 1000;

const replacement = '[secret]';

const looksSecret: readonly RegExp[] = [
  // Authorization headers and schemes.
  /\b(?:basic|bearer)\s+[^\s"',;]+/gi,
  // password=…, "token": "…", --secret …: the value.
  /(?<=(?:passw(?:or)?d|passwd|pwd|secret|token|credentials?|authorization|api[-_]?key|access[-_]?key|session)[\w-]*["']?\s*[:=]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;}"']+)/gi,
  // https://user:password@host
  /(?<=:\/\/)[^\s/@]+@/g,
  // JSON web tokens.
  /\beyJ[\w-]+(?:\.[\w-]*)*/g,
  // Long words with upper case, lower case and digits: keys and tokens, rarely paths or names.
  /(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?=[\w+/=-]*\d)[\w+/=-]{20,}/g,
];

/** @param bytes the beginning of the output */
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
