/** `host:port` as in Go's package net: IPv6 literals are in brackets. */

/** `net.SplitHostPort`; `undefined` for its errors, such as a host without a port. */
export function splitHostPort(text: string): { readonly host: string; readonly port: string } | undefined {
  const [, bracketed, plain, port = ''] = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? undefined : { host, port };
}

/** `net.JoinHostPort`. */
export function joinHostPort(host: string, port: string | number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
