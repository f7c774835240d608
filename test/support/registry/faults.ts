/**
 * Faults of the test registry: rules that break chosen requests, like real registries, proxies and hostile
 * servers. A slow or delayed response ends with the connection or the server.
 */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | readonly string[]>;
  readonly body: Buffer;
}

type Change =
  /** Another response. Default body: an OCI error of that status. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string | readonly string[]>>;
      readonly body?: string;
    }
  /** Headers that replace those of the correct response. An empty text removes one. */
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  /** The correct response with another body, but the digest header of the correct one. */
  | { readonly kind: 'body'; readonly body: string }
  | { readonly kind: 'redirect'; readonly to: string; readonly status?: number }
  | { readonly kind: 'gzip' }
  | { readonly kind: 'huge-headers'; readonly bytes: number };

export type Fault =
  | Change
  | { readonly kind: 'hold' }
  | { readonly kind: 'delay'; readonly ms: number }
  /** The correct response, after a promise. */
  | { readonly kind: 'after'; readonly event: Promise<unknown> }
  | { readonly kind: 'drop' }
  | { readonly kind: 'garbage' }
  /** Status and headers, then the connection closes. */
  | { readonly kind: 'close-after-headers' }
  /** The connection closes before `Content-Length` bytes. */
  | { readonly kind: 'short'; readonly missing: number }
  /** More bytes than `Content-Length`. */
  | { readonly kind: 'long'; readonly extra: number }
  /** An endless body in chunks, as fast as the client reads. */
  | { readonly kind: 'endless' }
  /** One byte of the body every `everyMs`, without end. */
  | { readonly kind: 'drip'; readonly everyMs: number }
  /** Endless headers: one byte every `everyMs`. */
  | { readonly kind: 'drip-headers'; readonly everyMs: number };

export interface FaultLimits {
  readonly method?: string;
  /** Only for requests with a credential. */
  readonly isAuthorized?: boolean;
  /** How often it applies. Default: always. */
  readonly times?: number;
}

interface FaultRule extends FaultLimits {
  readonly path: RegExp;
  readonly fault: Fault;
}

export class Faults {
  #rules: { readonly rule: FaultRule; left: number }[] = [];

  /**
   * Adds a rule. Later rules take precedence. @returns a function that removes it
   * @param path matched against the path with its query
   */
  add(path: RegExp, fault: Fault, limits: FaultLimits = {}): () => void {
    const entry = { rule: { path, fault, ...limits }, left: limits.times ?? Number.POSITIVE_INFINITY };
    this.#rules = [entry, ...this.#rules];
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  strike(method: string, path: string, isAuthorized: boolean): Fault | undefined {
    const entry = this.#rules.find(
      ({ rule, left }) =>
        left > 0 &&
        (rule.method ?? method) === method &&
        (isAuthorized || rule.isAuthorized !== true) &&
        rule.path.test(path),
    );
    if (entry) entry.left -= 1;
    return entry?.rule.fault;
  }
}

/** Sends a correct response. For HEAD, without the body, but with its length. */
export function send(response: ServerResponse, answer: Answer, head: boolean): void {
  response.writeHead(answer.status, {
    'content-length': String(answer.body.length),
    ...copy(answer.headers),
  });
  response.end(head ? undefined : answer.body);
}

export function spoil(response: ServerResponse, answer: Answer, head: boolean, fault: Fault): void {
  // A response has no socket before the previous one on the connection has ended.
  const { socket } = response.req;
  const every = (ms: number, act: () => void): void => {
    const timer = setInterval(act, ms);
    response.once('close', () => clearInterval(timer));
  };
  switch (fault.kind) {
    case 'hold':
      return;
    case 'delay': {
      const timer = setTimeout(() => send(response, answer, head), fault.ms);
      response.once('close', () => clearTimeout(timer));
      return;
    }
    case 'after':
      void fault.event.then(() => send(response, answer, head));
      return;
    case 'drop':
      socket.destroy();
      return;
    case 'garbage':
      socket.end('\u0016\u0003 this is not HTTP\n\n');
      return;
    case 'close-after-headers':
      response.writeHead(answer.status, { 'content-length': answer.body.length, ...copy(answer.headers) });
      response.flushHeaders();
      socket.end();
      return;
    case 'short':
      raw(response, answer, answer.body.length + fault.missing);
      return;
    case 'long':
      raw(response, answer, answer.body.length - fault.extra);
      return;
    case 'endless':
      response.writeHead(answer.status, copy(answer.headers)).flushHeaders();
      pour(response);
      return;
    case 'drip':
      response.writeHead(answer.status, copy(answer.headers)).flushHeaders();
      every(fault.everyMs, () => response.write(' '));
      return;
    case 'drip-headers':
      socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
      every(fault.everyMs, () => socket.write('a'));
      return;
    case 'status':
    case 'headers':
    case 'body':
    case 'redirect':
    case 'gzip':
    case 'huge-headers':
      send(response, changed(answer, fault), head);
  }
}

/** The response of a fault that only changes it. */
function changed(answer: Answer, fault: Change): Answer {
  const { headers, body } = answer;
  if (fault.kind === 'status') {
    const text = fault.body ?? JSON.stringify({ errors: [{ code: 'FAULT', message: 'made to fail' }] });
    const all = { 'content-type': 'application/json', ...fault.headers };
    return { status: fault.status, headers: all, body: Buffer.from(text) };
  }
  if (fault.kind === 'headers') {
    const all = Object.entries({ ...headers, ...fault.headers }).filter(([, value]) => value !== '');
    return { ...answer, headers: Object.fromEntries(all) };
  }
  if (fault.kind === 'body') return { ...answer, body: Buffer.from(fault.body) };
  if (fault.kind === 'redirect')
    return { status: fault.status ?? 307, headers: { location: fault.to }, body: Buffer.alloc(0) };
  if (fault.kind === 'gzip')
    return { ...answer, headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) };
  return { ...answer, headers: { ...headers, 'x-huge': 'a'.repeat(fault.bytes) } };
}

function raw(response: ServerResponse, answer: Answer, length: number): void {
  const type = answer.headers['content-type'];
  const head = `HTTP/1.1 ${answer.status} OK\r\ncontent-type: ${String(type)}\r\ncontent-length: ${length}\r\n\r\n`;
  response.req.socket.end(Buffer.concat([Buffer.from(head), answer.body]));
}

function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, ' ');
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', more);
  more();
}

function copy(headers: Answer['headers']): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]]),
  );
}
