/** A forward proxy on a socket: CONNECT for https, absolute URLs for http. It resolves names itself. */
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { PemPair } from '../certificates.ts';
import { listen } from '../listen.ts';

export interface TestProxyOptions {
  /** Host and port to which names resolve. */
  readonly to: { readonly host: string; readonly port: number };
  /** Response to CONNECT. Default: a tunnel. Empty text: no response. */
  readonly connectAnswer?: string;
  /** Default: the proxy does not speak TLS. */
  readonly tls?: PemPair | undefined;
}

export async function startTestProxy(options: TestProxyOptions) {
  /** `CONNECT host:port` or `GET http://…`, with the Proxy-Authorization of the request. */
  const requests: { readonly line: string; readonly authorization: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  const note = (message: IncomingMessage): void => {
    const line = `${message.method} ${message.url}`;
    requests.push({ line, authorization: message.headers['proxy-authorization'] });
  };
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const forward = (message: IncomingMessage, response: ServerResponse): void => {
    note(message);
    const { pathname, search } = new URL(message.url ?? '/');
    const onward = request(
      { ...options.to, method: message.method, path: `${pathname}${search}`, headers: message.headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    onward.end();
  };
  const server = options.tls ? createTlsServer(options.tls, forward) : createServer(forward);
  server.on('connection', keep);
  server.on('connect', (message, socket: Socket) => {
    note(message);
    if (options.connectAnswer !== undefined) {
      if (options.connectAnswer !== '') socket.end(options.connectAnswer);
      // Without reading, a socket does not notice the end of the other side, and stays half open.
      socket.on('end', () => socket.destroy()).resume();
      return;
    }
    const onward = connect(options.to.port, options.to.host, () => {
      // In two pieces, because a header may be split.
      socket.write('HTTP/1.1 200 Connection');
      socket.write(' established\r\nVia: test\r\n\r\n');
      // Unlike `pipe`, this closes one side after a reset of the other.
      pipeline(onward, socket, onward, () => undefined);
    });
    keep(onward);
  });
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${await listen(server)}`,
    requests,
    get connections() {
      return sockets.size;
    },
    close: async (): Promise<void> => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
