/** Headers with rules of their own. */

/** Also for `0` and for a date in the past. */
export const minRetryAfterMs = 1000;

/** One header must not stop lookups for longer; after this one request tries again. */
export const maxRetryAfterMs = 15 * 60_000;

/**
 * The pause of `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. Neither is trusted.
 * @param now wall clock, milliseconds
 * @returns milliseconds within the bounds above; undefined if there is no usable value
 */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  // Date.parse accepts `12.5` and `-1`; a date of RFC 9110 always begins with the name of a day.
  if (Number.isNaN(ms) || !/^(\d+$|[A-Z])/i.test(text)) return undefined;
  return Math.min(Math.max(ms, minRetryAfterMs), maxRetryAfterMs);
}

/** Headers that authenticate: they are sent only to the host that they were configured for. */
const loginHeaders: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** @param name in any case; white space around it is ignored */
export function isLoginHeader(name: string): boolean {
  return loginHeaders.has(name.trim().toLowerCase());
}
