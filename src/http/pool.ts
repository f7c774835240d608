/** Kept-alive connections of one identity: what both ends prove, and where connections may go, is the same for all of a pool. */
import type { Agent as HttpAgent } from 'node:http';

/** Closes the idle connections of a pool. @param url only those to this host and port */
export function closeIdle(pool: HttpAgent, url?: URL): void {
  // Node documents that a name begins with `host:port:` (`agent.getName`).
  const port = url?.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url?.port;
  const prefix = url === undefined ? '' : `${url.hostname.replace(/^\[|\]$/g, '')}:${port}:`;
  for (const [name, sockets] of Object.entries(pool.freeSockets)) {
    if (name.startsWith(prefix)) for (const socket of sockets ?? []) socket.destroy();
  }
}

/** Closes what is idle now, and each other connection when it becomes idle. */
export function retirePool(pool: HttpAgent): void {
  pool.maxFreeSockets = 0;
  closeIdle(pool);
}
