/**
 * The demo's network: a forward proxy, which the agents use as `HTTPS_PROXY`. It connects the names of the
 * demo's registries to their servers on loopback and refuses all others, so the demo needs no network.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';

export interface Network {
  /** Value of `HTTPS_PROXY`. */
  readonly url: string;
  close(): Promise<void>;
}

/** @param ports name of a host → port of 127.0.0.1 that serves it */
export async function startNetwork(ports: ReadonlyMap<string, number>): Promise<Network> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const server = createServer((_request, response) => response.writeHead(504).end());
  server.on('connection', keep);
  server.on('connect', ({ url = '' }, socket: Socket) => {
    const [, name = '', port = ''] = /^(.+):(\d+)$/.exec(url) ?? [];
    const target = port === '443' ? ports.get(name) : undefined;
    if (target === undefined) {
      socket.end('HTTP/1.1 504 Gateway Timeout\r\n\r\n');
      return;
    }
    const onward = connect(target, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    keep(onward);
    onward.on('close', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
