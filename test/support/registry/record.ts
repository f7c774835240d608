/** The test registry's record of each request, and waiting for one. */
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface RecordedRequest {
  /** When it arrived, in milliseconds since the epoch, with a fraction. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** The first word of the Authorization header in lower case, and its user. */
  readonly authorization?: { readonly scheme: string; readonly user: string; readonly token?: string };
  readonly body: string;
  /** Number of the connection, counted from 1: equal numbers mean a kept-alive connection. */
  readonly connection: number;
  readonly status: number;
  /** Resolves at its end: `aborted` if the client disconnected before the end of the response. */
  readonly ended: Promise<'answered' | 'aborted'>;
}

export class Recorder {
  readonly requests: RecordedRequest[] = [];
  readonly #arrivals = new EventEmitter().setMaxListeners(0);

  add(request: RecordedRequest): void {
    this.requests.push(request);
    this.#arrivals.emit('request');
  }

  /** The first matching request, past or future. */
  async waitFor(matches: (request: RecordedRequest) => boolean): Promise<RecordedRequest> {
    for (;;) {
      const found = this.requests.find((request) => matches(request));
      if (found) return found;
      await once(this.#arrivals, 'request', { signal: AbortSignal.timeout(60_000) });
    }
  }

  /** Requests by method and kind, such as `{ 'GET manifests': 1, 'GET blobs': 1, 'POST token': 1 }`. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { method, path } of this.requests) {
      const kind = /\/(manifests|blobs)\/[^/]+$/.exec(path)?.[1] ?? path.split('/').at(1) ?? '';
      counts[`${method} ${kind}`] = (counts[`${method} ${kind}`] ?? 0) + 1;
    }
    return counts;
  }

  clear(): void {
    this.requests.length = 0;
  }
}

export function ending(response: ServerResponse): Promise<'answered' | 'aborted'> {
  return new Promise((resolve) => {
    response.once('close', () => resolve(response.writableFinished ? 'answered' : 'aborted'));
  });
}
