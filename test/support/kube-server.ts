/**
 * An HTTPS server that behaves like the part of the API server that a test needs: each path has a script of answers,
 * taken in order, the last one for ever. It records what it was asked.
 */
import type { ServerResponse } from 'node:http';
import { listenAsKube } from './kube-listener.ts';
import type { KubeAccess } from '../../src/kube/api/access.ts';

export interface KubeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  /** As text; empty for a GET. */
  readonly body: string;
}

export type KubeAnswer = (request: KubeRequest, response: ServerResponse) => void;

export interface KubeServer {
  readonly access: KubeAccess;
  readonly requests: KubeRequest[];
  /** Connections that were opened. */
  connections(): number;
  /** Answers for a path, in order; for a watch the path is followed by `?watch`. */
  script(path: string, ...answers: KubeAnswer[]): void;
  /** Resolves when a request to the path has arrived `count` times. */
  asked(path: string, count: number): Promise<void>;
  close(): Promise<void>;
}

/** Answers with an object, or with a `Status` for a status other than 200. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): KubeAnswer {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
}

/** Sends watch events and keeps the answer open. */
export function events(...list: unknown[]): KubeAnswer {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(list.map((event) => `${JSON.stringify(event)}\n`).join(''));
  };
}

/** Sends watch events and ends the answer. */
export function eventsThenEnd(...list: unknown[]): KubeAnswer {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(list.map((event) => `${JSON.stringify(event)}\n`).join(''));
  };
}

export async function startKubeServer(): Promise<KubeServer> {
  const scripts = new Map<string, KubeAnswer[]>();
  const requests: KubeRequest[] = [];
  const waiting: { readonly path: string; readonly count: number; readonly resolve: () => void }[] = [];

  function keyOf(request: KubeRequest): string {
    return request.query.get('watch') === 'true' ? `${request.path}?watch` : request.path;
  }

  function handle(request: KubeRequest, response: ServerResponse): void {
    requests.push(request);
    const script = scripts.get(keyOf(request)) ?? [];
    const answer = script.length > 1 ? script.shift() : script[0];
    if (answer) answer(request, response);
    else json({ kind: 'Status', message: `${request.path} not found`, code: 404 }, 404)(request, response);
    for (const each of waiting) if (count(each.path) >= each.count) each.resolve();
  }

  function count(path: string): number {
    return requests.filter((request) => keyOf(request) === path).length;
  }

  const listener = await listenAsKube('default', handle);

  return {
    access: listener.access,
    requests,
    connections: () => listener.connections(),
    script: (path, ...answers) => {
      scripts.set(path, answers);
    },
    asked: (path, times) =>
      new Promise<void>((resolve) => {
        if (count(path) >= times) resolve();
        else waiting.push({ path, count: times, resolve });
      }),
    close: () => listener.close(),
  };
}
