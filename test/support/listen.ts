/** Servers on free ports of loopback. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';

/** Resolves when the server listens. @returns the port */
export async function listen(server: Server, address = '127.0.0.1'): Promise<number> {
  await once(server.listen(0, address), 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port without a listener, free a moment ago. */
export async function closedPort(address = '127.0.0.1'): Promise<number> {
  const server = createServer();
  const port = await listen(server, address);
  await once(server.close(), 'close');
  return port;
}
