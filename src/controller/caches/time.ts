/** Times in objects are RFC 3339, by the API server's clock. */

/** @returns milliseconds since 1970; 0, which is long ago, if it is missing or cannot be parsed. */
export function timeOf(text: string | undefined): number {
  const time = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? 0 : time;
}
