/**
 * A small OCI registry on a real socket, for tests and the demo. It serves pushed content (`content.ts`),
 * with authentication (`tokens.ts`) and faults (`faults.ts`), and records each request (`record.ts`). HTTPS
 * with a throwaway certificate by default.
 *
 *   const registry = await startTestRegistry();
 *   t.teardown(() => registry.close());
 *   registry.push('library/app', 'v1', multiArch(['linux/amd64', 'linux/arm64']));
 */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { sharedServer, type IssueOptions, type TestCa } from '../certificates.ts';
import type { Content } from './content.ts';
import { Faults, send, spoil, type Answer } from './faults.ts';
import { ending, Recorder, type RecordedRequest } from './record.ts';
import type { TokenIssuer } from './tokens.ts';

export type RegistryAuth =
  | { readonly kind: 'anonymous' }
  | { readonly kind: 'basic'; readonly users: Readonly<Record<string, string>> }
  | {
      readonly kind: 'bearer';
      readonly issuer: TokenIssuer;
      /** Address of the token server. Default: `/token` of this registry. */
      readonly realm?: string;
      readonly service?: string;
    };

export interface TestRegistryOptions {
  /** `false`: plain HTTP. A CA: it issues the certificate. Default: a certificate that test servers share. */
  readonly tls?: false | TestCa;
  /** Address to listen on. Default: 127.0.0.1 and a free port. */
  readonly listen?: { readonly address: string; readonly port: number };
  /** Names in the certificate besides `127.0.0.1` and `localhost`. */
  readonly names?: readonly string[];
  readonly auth?: RegistryAuth;
  /** Serves `/token` as the token server of another registry. */
  readonly tokens?: TokenIssuer;
  /** The maximum size of a page of tags. */
  readonly tagsPerPage?: number;
}

export type TestRegistry = Awaited<ReturnType<typeof startTestRegistry>>;

type ReceivedRequest = Omit<RecordedRequest, 'status'>;

async function certify(tls: TestRegistryOptions['tls'], options: IssueOptions) {
  if (tls === false) return undefined;
  return tls === undefined ? sharedServer(options) : { ca: tls, pair: await tls.issue(options) };
}

export async function startTestRegistry(options: TestRegistryOptions = {}) {
  const listen = options.listen ?? { address: '127.0.0.1', port: 0 };
  const store = new Map<string, Content>();
  const recorder = new Recorder();
  const faults = new Faults();
  const sockets = new Map<Socket, number>();
  let connected = 0;

  const certified = await certify(options.tls, {
    cn: 'test registry',
    dns: ['localhost', ...(options.names ?? [])],
    ip: ['127.0.0.1', '::1', listen.address],
  });
  const server = certified ? createHttpsServer(certified.pair) : createHttpServer();
  server.keepAliveTimeout = 60_000;
  // Connections are counted by the plain socket, because it stays open under TLS.
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, ++connected);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(listen.port, listen.address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = `${listen.address}:${port}`;
  const url = `${certified ? 'https' : 'http'}://${host}`;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = await receive(request, response);
    const answer = respond(received);
    recorder.add({ ...received, status: answer.status });
    const head = received.method === 'HEAD';
    const fault = faults.strike(received.method, request.url ?? '', received.authorization !== undefined);
    if (fault) spoil(response, answer, head, fault);
    else send(response, answer, head);
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<ReceivedRequest> {
    const ended = ending(response);
    const at = performance.timeOrigin + performance.now();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const target = new URL(request.url ?? '/', url);
    const authorization = readAuthorization(request.headers.authorization, issuer());
    return {
      at,
      method: request.method ?? '',
      path: target.pathname,
      query: target.searchParams,
      headers: request.headers,
      ...(authorization ? { authorization } : {}),
      body: Buffer.concat(chunks).toString(),
      connection: connectionNumber(request.socket.remotePort),
      ended,
    };
  }

  function connectionNumber(remotePort: number | undefined): number {
    for (const [socket, number] of sockets) if (socket.remotePort === remotePort) return number;
    return 0;
  }

  function issuer(): TokenIssuer | undefined {
    return options.tokens ?? (options.auth?.kind === 'bearer' ? options.auth.issuer : undefined);
  }

  function respond(request: ReceivedRequest): Answer {
    if (request.path === '/token') return answerToken(request);
    const { path } = request;
    if (!path.startsWith('/v2')) return failure(404, 'NOT_FOUND');
    const [, repository, kind, reference] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
    const listed = /^\/v2\/(.+)\/tags\/list$/.exec(path)?.[1];
    if (listed !== undefined) return authorize(request, listed) ?? answerTags(request, listed);
    const refusal = authorize(request, repository ?? '');
    if (refusal) return refusal;
    if (path === '/v2/' || path === '/v2') return { status: 200, headers: {}, body: Buffer.from('{}') };
    if (repository === undefined || kind === undefined || reference === undefined) {
      return failure(404, 'NAME_UNKNOWN');
    }
    const found = store.get(
      `${request.query.get('ns') ?? ''} ${repository} ${decodeURIComponent(reference)}`,
    );
    if (!found) return failure(404, kind === 'blobs' ? 'BLOB_UNKNOWN' : 'MANIFEST_UNKNOWN');
    return {
      status: 200,
      headers: {
        'content-type': kind === 'blobs' ? 'application/octet-stream' : found.mediaType,
        'docker-content-digest': found.digest,
      },
      body: found.bytes,
    };
  }

  /** In pages, by `n` and `last`. */
  function answerTags({ query }: ReceivedRequest, repository: string): Answer {
    const start = `${query.get('ns') ?? ''} ${repository} `;
    const last = query.get('last') ?? '';
    const tags = [...store.keys()]
      .filter((key) => key.startsWith(start) && !key.includes('sha256:'))
      .map((key) => key.slice(start.length))
      .filter((tag) => tag > last)
      .sort();
    const page = tags.slice(0, Math.min(Number(query.get('n') ?? tags.length), options.tagsPerPage ?? 1000));
    const link = `</v2/${repository}/tags/list?n=${page.length}&last=${page.at(-1)}>; rel="next"`;
    return {
      status: 200,
      headers: { 'content-type': 'application/json', ...(page.length < tags.length && { link }) },
      body: Buffer.from(JSON.stringify({ name: repository, tags: page })),
    };
  }

  function answerToken(request: ReceivedRequest): Answer {
    const tokens = issuer();
    if (!tokens) return failure(404, 'NOT_FOUND');
    const basic = readBasic(request.headers.authorization);
    const { status, body } = tokens.answer({
      method: request.method,
      query: request.query,
      form: new URLSearchParams(request.body),
      ...(basic ? { basic } : {}),
    });
    return {
      status,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
    };
  }

  function authorize(request: ReceivedRequest, repository: string): Answer | undefined {
    const auth = options.auth ?? { kind: 'anonymous' };
    if (auth.kind === 'anonymous') return undefined;
    if (auth.kind === 'basic') {
      const basic = readBasic(request.headers.authorization);
      if (basic && auth.users[basic.user] === basic.password) return undefined;
      return failure(401, 'UNAUTHORIZED', { 'www-authenticate': 'Basic realm="test registry"' });
    }
    const token = request.authorization?.token;
    const verdict = token === undefined ? undefined : auth.issuer.check(token, repository);
    if (verdict === 'granted') return undefined;
    const error = { unknown: ',error="invalid_token"', insufficient: ',error="insufficient_scope"' };
    const scope = repository === '' ? '' : `,scope="repository:${repository}:pull"`;
    const realm = auth.realm ?? `${url}/token`;
    const challenge = `Bearer realm="${realm}",service="${auth.service ?? host}"${scope}`;
    return failure(401, 'UNAUTHORIZED', {
      'www-authenticate': `${challenge}${verdict === undefined ? '' : error[verdict]}`,
    });
  }

  /**
   * Stores a document with its parts, and tags the top.
   * @param namespace if set, it is served only to requests with `?ns=<namespace>`, as by a mirror
   */
  function push(repository: string, tag: string, content: Content, namespace = ''): void {
    const keep = (part: Content): void => {
      store.set(`${namespace} ${repository} ${part.digest}`, part);
      for (const inner of [...part.children, ...part.blobs]) keep(inner);
    };
    keep(content);
    store.set(`${namespace} ${repository} ${tag}`, content);
  }

  return {
    /** `127.0.0.1:port`, or the address and port of `listen`. */
    host,
    port,
    url,
    /** The CA to trust, PEM; empty for plain HTTP. */
    ca: certified?.ca.cert ?? '',
    faults,
    requests: recorder.requests as readonly RecordedRequest[],
    waitFor: (matches: (request: RecordedRequest) => boolean): Promise<RecordedRequest> =>
      recorder.waitFor(matches),
    counts: (): Record<string, number> => recorder.counts(),
    clearRequests: (): void => recorder.clear(),
    /** Number of connections that are open now. */
    get connections(): number {
      return sockets.size;
    },
    push,
    close: async (): Promise<void> => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets.keys()) socket.destroy();
      await closed;
    },
  };
}

function failure(status: number, code: string, headers: Answer['headers'] = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify({ errors: [{ code, message: 'refused by the test registry' }] })),
  };
}

function readAuthorization(
  header: string | undefined,
  issuer: TokenIssuer | undefined,
): RecordedRequest['authorization'] {
  if (header === undefined) return undefined;
  const [scheme = '', token = ''] = header.split(' ');
  const basic = readBasic(header);
  if (basic) return { scheme: 'basic', user: basic.user };
  return { scheme: scheme.toLowerCase(), user: issuer?.userOf(token) ?? '', token };
}

function readBasic(header: string | undefined): { user: string; password: string } | undefined {
  const encoded = /^basic (.+)$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return { user: text.slice(0, colon), password: text.slice(colon + 1) };
}
