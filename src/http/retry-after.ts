/** `Retry-After` (RFC 9110, section 10.2.3): seconds or a date, of a server whose clock and good will are unknown. */

/** A date in the past or `0` still means: not at once. */
export const minRetryAfterMs = 1000;

/** Longer than this no pod is left guessing because of one header; one request then finds out. */
export const maxRetryAfterMs = 15 * 60_000;

/**
 * How long to leave a server alone.
 * @param value the header, or undefined
 * @param now wall clock, milliseconds
 * @returns milliseconds within the bounds above; undefined where there is no usable value
 */
export function retryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  // Date.parse takes `12.5` and `-1` for dates; a date of RFC 9110 always begins with a day's name.
  if (Number.isNaN(ms) || !/^(\d+$|[A-Z])/i.test(text)) return undefined;
  return Math.min(Math.max(ms, minRetryAfterMs), maxRetryAfterMs);
}
