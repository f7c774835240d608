/** The socket of an API server double: HTTPS with a certificate of its own, requests read whole, connections counted. */
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { KubeAccess } from '../../src/kube/api/access.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { sharedServer } from './certificates.ts';
import type { KubeRequest } from './kube-server.ts';

export interface KubeListener {
  readonly access: KubeAccess;
  /** Connections that were opened since the start. */
  connections(): number;
  /** Resets every connection. */
  dropConnections(): void;
  close(): Promise<void>;
}

/**
 * Listens on a free port of loopback.
 * @param namespace that access stands in
 * @param receive gets each request with its body
 */
export async function listenAsKube(
  namespace: string,
  receive: (request: KubeRequest, response: ServerResponse) => void,
): Promise<KubeListener> {
  const { ca, pair } = await sharedServer({ cn: 'kubernetes', ip: ['127.0.0.1'] });
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer(pair, (incoming: IncomingMessage, response: ServerResponse) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    incoming.on('end', () => {
      const url = new URL(incoming.url ?? '/', 'https://kubernetes');
      const request = {
        method: incoming.method ?? '',
        path: url.pathname,
        query: url.searchParams,
        authorization: incoming.headers.authorization,
        contentType: incoming.headers['content-type'],
        body,
      };
      receive(request, response);
    });
  });
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;

  function dropConnections(): void {
    for (const socket of sockets) socket.destroy();
  }

  return {
    access: {
      server: `https://127.0.0.1:${port}`,
      namespace,
      description: 'test',
      now: () => Promise.resolve({ tls: { ca: ca.cert }, authorization: secret('Bearer of-the-test') }),
    },
    connections: () => connections,
    dropConnections,
    close: () =>
      new Promise<void>((resolve) => {
        dropConnections();
        server.close(() => resolve());
      }),
  };
}
