/** Listen addresses: `host:port`, `[::1]:port`, or `:port` for all. Brackets also enclose IPv4. */
import { joinHostPort } from '../names/host-port.ts';

/** Why a server cannot start. Messages name the address or the file, and what to change. */
export class ServingError extends Error {
  override readonly name = 'ServingError';
}

interface ListenAddress {
  /** `undefined`: all IPv6 and IPv4 addresses. */
  readonly host: string | undefined;
  readonly port: number;
}

/** @throws ServingError */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    throw new ServingError(
      `"${text}" is not an address to listen on; write host:port, such as 0.0.0.0:8443, [::1]:8443 or :8443`,
    );
  }
  const host = match[1] ?? match[2];
  return { host: host === '' ? undefined : host, port };
}

/** The URL of a server for clients on the same machine. */
export function urlOf(protocol: 'http' | 'https', host: string | undefined, port: number): string {
  if (host === undefined || host === '0.0.0.0') return `${protocol}://127.0.0.1:${port}`;
  if (host === '::') return `${protocol}://[::1]:${port}`;
  return `${protocol}://${joinHostPort(host, port)}`;
}
