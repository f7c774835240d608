/**
 * Proxies of the API server: one for TCP with connections that can be reset or paused, one for HTTPS with
 * some error responses. The latter forwards as one user, because a client certificate ends at the proxy.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer as createHttpsServer, request } from 'node:https';
import { type Socket, connect, createServer } from 'node:net';
import { listen } from '../../../support/listen.ts';
import type { Cluster } from '../harness.ts';

export interface InjectedError {
  readonly status: number;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request is forwarded; then only its response is replaced. */
  readonly isForwarded?: boolean;
}

/** @param cn user that the real server sees */
export async function startErrorProxy(cluster: Cluster, cn: string) {
  const { ca } = cluster.identities;
  const [serving, client] = await Promise.all([
    ca.issue({ cn: 'proxy', ip: ['127.0.0.1'] }),
    ca.issue({ cn, organizations: ['system:masters'], client: true }),
  ]);
  const agent = new Agent({ keepAlive: true, ca: ca.cert, ...client });
  const sockets = new Set<Socket>();
  const errors = new Map<number, number>();
  const server = createHttpsServer(serving, (received, response) => void handle(received, response));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
  });

  async function handle(received: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = received;
    const error = proxy.rule(method, url);
    if (error === undefined) {
      forward(received, response, response);
      return;
    }
    errors.set(error.status, (errors.get(error.status) ?? 0) + 1);
    const sendError = (): void => {
      const { status, reason, headers } = error;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(
        JSON.stringify({
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          message: 'injected',
          reason,
          code: status,
        }),
      );
    };
    if (error.isForwarded === true) forward(received, response, undefined, sendError);
    else {
      received.resume();
      sendError();
    }
  }

  function forward(
    received: IncomingMessage,
    response: ServerResponse,
    into: ServerResponse | undefined,
    done?: () => void,
  ): void {
    const { host: _, ...headers } = received.headers;
    const sent = request(new URL(received.url ?? '', cluster.server), {
      method: received.method,
      headers,
      agent,
    });
    sent.on('response', (upstream) => {
      into?.writeHead(upstream.statusCode ?? 502, upstream.headers);
      if (into) upstream.pipe(into);
      else upstream.resume().on('end', () => done?.());
      upstream.on('error', () => response.destroy());
    });
    sent.on('error', () => response.destroy());
    response.on('close', () => sent.destroy());
    received.pipe(sent);
  }

  const proxy = {
    url: `https://127.0.0.1:${await listen(server)}`,
    rule: (_method: string, _path: string): InjectedError | undefined => undefined,
    errors,
    close: async (): Promise<void> => {
      agent.destroy();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  cluster.onStop(() => proxy.close());
  return proxy;
}

/** @param target `https://127.0.0.1:PORT` */
export async function startTcpProxy(target: string) {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let held = false;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) {
      socket.on('error', end).on('close', end).setNoDelay(true);
      if (held) socket.pause();
    }
    near.pipe(far);
    far.pipe(near);
    if (held) for (const socket of pair) socket.unpipe();
  });
  return {
    url: `https://127.0.0.1:${await listen(server)}`,
    /** Resets every connection; new ones are accepted. */
    reset: (): void => {
      for (const [near] of pairs) near.resetAndDestroy();
    },
    /** Holds back all bytes or not; connections stay open. */
    hold: (wanted: boolean): void => {
      held = wanted;
      for (const [near, far] of pairs) {
        if (held) {
          near.unpipe();
          far.unpipe();
        } else {
          near.pipe(far);
          far.pipe(near);
        }
      }
    },
    close: async (): Promise<void> => {
      for (const [near] of pairs) near.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
