/** Headers that log in. Whoever writes one means the host that it is written for, and no other. */
const loginHeaders: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** @param name in any case; white space around it does not count */
export function isLoginHeader(name: string): boolean {
  return loginHeaders.has(name.trim().toLowerCase());
}
