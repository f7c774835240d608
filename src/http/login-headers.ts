/** Headers that authenticate: they are sent only to the host that they were configured for. */
const loginHeaders: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** @param name in any case; white space around it is ignored */
export function isLoginHeader(name: string): boolean {
  return loginHeaders.has(name.trim().toLowerCase());
}
