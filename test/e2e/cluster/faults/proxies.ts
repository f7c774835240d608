/**
 * Proxies of the API server: one for TCP with connections that can be reset or paused, one for HTTPS with
 * some error responses. The latter forwards as one user, because a client certificate ends at the proxy.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer as createHttpsServer, request } from 'node:https';
import { type Socket, connect, createServer } from 'node:net';
import { listen } from '../../../support/listen.ts';
import type { Cluster } from '../harness.ts';

export interface StormAnswer {
  readonly status: number;
  readonly reason: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request is forwarded before this answer replaces the real one. */
  readonly doneAnyway?: boolean;
}

/** @param cn user that the real server sees */
export async function startStorm(cluster: Cluster, cn: string) {
  const { ca } = cluster.identities;
  const [serving, client] = await Promise.all([
    ca.issue({ cn: 'storm', ip: ['127.0.0.1'] }),
    ca.issue({ cn, organizations: ['system:masters'], client: true }),
  ]);
  const agent = new Agent({ keepAlive: true, ca: ca.cert, ...client });
  const sockets = new Set<Socket>();
  const struck = new Map<number, number>();
  const server = createHttpsServer(serving, (received, response) => void answer(received, response));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
  });

  async function answer(received: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = received;
    const instead = storm.rule(method, url);
    if (instead === undefined) {
      forward(received, response, response);
      return;
    }
    struck.set(instead.status, (struck.get(instead.status) ?? 0) + 1);
    const say = (): void => {
      const { status, reason, headers } = instead;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(
        JSON.stringify({
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          message: 'a storm',
          reason,
          code: status,
        }),
      );
    };
    if (instead.doneAnyway === true) forward(received, response, undefined, say);
    else {
      received.resume();
      say();
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
    sent.on('response', (answered) => {
      into?.writeHead(answered.statusCode ?? 502, answered.headers);
      if (into) answered.pipe(into);
      else answered.resume().on('end', () => done?.());
      answered.on('error', () => response.destroy());
    });
    sent.on('error', () => response.destroy());
    response.on('close', () => sent.destroy());
    received.pipe(sent);
  }

  const storm = {
    url: `https://127.0.0.1:${await listen(server)}`,
    rule: (_method: string, _path: string): StormAnswer | undefined => undefined,
    struck,
    close: async (): Promise<void> => {
      agent.destroy();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  cluster.onStop(() => storm.close());
  return storm;
}

/** @param target `https://127.0.0.1:PORT` */
export async function startCut(target: string) {
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
    /** Resets every connection; new ones are taken. */
    cut: (): void => {
      for (const [near] of pairs) near.resetAndDestroy();
    },
    /** Whether bytes go through; connections stay open meanwhile. */
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
