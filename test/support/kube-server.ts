/** Servers in place of an API server: a listener for test doubles, and a server with scripted responses. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { KubeAccess } from '../../src/kube/api/access.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { sharedServer } from './certificates.ts';
import { listen } from './listen.ts';
import { until } from './until.ts';

export interface KubeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly accept: string | undefined;
  readonly body: string;
}

export interface ListenOptions {
  /** HTTP. For tests of features: handshakes cost more than most of them. Default: HTTPS. */
  readonly isPlain?: boolean;
}

/**
 * Listens on a free port of loopback.
 * @param namespace of the access
 * @param receive gets each request with its body
 */
export async function listenAsKube(
  namespace: string,
  receive: (request: KubeRequest, response: ServerResponse) => void,
  { isPlain = false }: ListenOptions = {},
) {
  const { ca, pair } = await sharedServer({ cn: 'kubernetes', ip: ['127.0.0.1'] });
  const sockets = new Set<Socket>();
  let connections = 0;
  const listener = (incoming: IncomingMessage, response: ServerResponse): void => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    incoming.on('end', () => {
      const url = new URL(incoming.url ?? '/', 'https://kubernetes');
      const { authorization, 'content-type': contentType, accept } = incoming.headers;
      const { pathname: path, searchParams: query } = url;
      const method = incoming.method ?? '';
      receive({ method, path, query, authorization, contentType, accept, body }, response);
    });
  };
  const server = isPlain ? createServer(listener) : createTlsServer(pair, listener);
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const port = await listen(server);

  function dropConnections(): void {
    for (const socket of sockets) socket.destroy();
  }

  const access: KubeAccess = {
    server: `${isPlain ? 'http' : 'https'}://127.0.0.1:${port}`,
    namespace,
    description: 'test',
    now: () => Promise.resolve({ tls: { ca: ca.cert }, authorization: secret('Bearer of-the-test') }),
  };
  return {
    access,
    /** Number of connections that were opened since the start. */
    connections: (): number => connections,
    dropConnections,
    close: (): Promise<void> =>
      new Promise((resolve) => {
        dropConnections();
        server.close(() => resolve());
      }),
  };
}

export type KubeAnswer = (request: KubeRequest, response: ServerResponse) => void;

export type KubeServer = Awaited<ReturnType<typeof startKubeServer>>;

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): KubeAnswer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
}

export function events(...list: unknown[]): KubeAnswer {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(list.map((event) => `${JSON.stringify(event)}\n`).join(''));
  };
}

export function eventsThenEnd(...list: unknown[]): KubeAnswer {
  return (request, response) => {
    events(...list)(request, response);
    response.end();
  };
}

export async function startKubeServer(options: ListenOptions = {}) {
  const scripts = new Map<string, KubeAnswer[]>();
  const requests: KubeRequest[] = [];

  function keyOf(request: KubeRequest): string {
    return request.query.get('watch') === 'true' ? `${request.path}?watch` : request.path;
  }

  function handle(request: KubeRequest, response: ServerResponse): void {
    requests.push(request);
    const script = scripts.get(keyOf(request)) ?? [];
    const answer = script.length > 1 ? script.shift() : script[0];
    if (answer) answer(request, response);
    else json({ kind: 'Status', message: `${request.path} not found`, code: 404 }, 404)(request, response);
  }

  const listener = await listenAsKube('default', handle, options);
  return {
    access: listener.access,
    requests,
    connections: (): number => listener.connections(),
    /** Sets the responses for a path, in order. For a watch, `?watch` follows the path. */
    script: (path: string, ...answers: KubeAnswer[]): void => void scripts.set(path, answers),
    /** Resolves when this number of requests to the path have arrived. */
    untilReceived: (path: string, times: number): Promise<void> =>
      until(() => requests.filter((request) => keyOf(request) === path).length >= times, path),
    close: (): Promise<void> => listener.close(),
  };
}
