/** A recording registry with the behavior of the case. Stateless: a token holds user, issuer and scopes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Content } from '../../support/registry/content.ts';

/** The only user of the registries. */
export const knownUser = { username: 'puller', password: 'pass:word-of-the-test' };

export interface Behavior {
  /**
   * Response to manifests and blobs: unchanged, with a status, or broken. `get-500`: only HEAD works; `cut`:
   * less than announced; `forged`: another document of the same digest; `drop`: the connection is closed.
   */
  readonly answer:
    | 'image'
    | 'absent'
    | 401
    | 403
    | 429
    | 500
    | 503
    | 'drop'
    | 'cut'
    | 'forged'
    | 'get-500'
    | 'no-head'
    | 'no-digest'
    | 'redirect';
  readonly auth: 'open' | 'basic' | 'bearer' | 'bearer-elsewhere' | 'bearer-plain-realm' | 'unusable';
  /** Whether an anonymous token gives access. */
  readonly anonymous: boolean;
  /** Whether the token server supports POST (OAuth2). */
  readonly post: boolean;
  /** Serves another image under the same tag, as a stale mirror does. */
  readonly stale: boolean;
  /** Host, for `redirect`. */
  readonly redirectTo?: string;
  /** Token server without TLS, for `bearer-plain-realm`. */
  readonly plainRealm?: string;
  /** Seconds, for 429. */
  readonly retryAfter?: string;
}

export interface Stock {
  readonly repository: string;
  readonly objects: ReadonlyMap<string, Content>;
  readonly staleObjects?: ReadonlyMap<string, Content>;
  /** The scope has the whole path after `/v2/`, which is another one at some mirrors. */
  readonly scopeOfPath?: true;
}

export interface Recorded {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly ns: string;
  /** `connection`: one without a request. */
  readonly kind: 'manifests' | 'blobs' | 'token' | 'other' | 'connection';
  readonly object: string;
  /** `none`, `basic USER`, `bearer USER of HOST`, or the header itself. */
  readonly authorization: string;
  /** Headers that begin with `x-`, as `name=value`, sorted. */
  readonly headers: string;
  /** For `token`: user, service and scopes. */
  readonly tokenRequest: string;
  readonly status: number | 'dropped';
  /** Host that the response redirects to, or an empty text. */
  readonly leadsTo: string;
}

interface Exchange {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly behavior: Behavior | undefined;
  readonly stock: Stock;
  readonly records: Recorded[];
}

interface Answer {
  readonly status: number | 'dropped';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Announced instead of the body's own length. */
  readonly length?: number;
}

/** Token requests of these tests are a few hundred bytes. */
const maxFormBytes = 16 * 1024;

export function respond(exchange: Exchange): void {
  const { request, response } = exchange;
  const url = new URL(request.url ?? '/', `${exchange.scheme}://${exchange.host}`);
  let form = '';
  request.on('data', (chunk: Buffer) => {
    if (form.length < maxFormBytes) form += chunk.toString();
  });
  request.on('end', () => {
    const [, repository, kind, object] =
      /^.*?\/(team\/[^/]+)\/(manifests|blobs)\/([^/]+)$/.exec(url.pathname) ?? [];
    const parsed = { url, form: new URLSearchParams(form), repository, kind, object };
    const answer = url.pathname === '/token' ? tokenAnswer(exchange, parsed) : objectAnswer(exchange, parsed);
    exchange.records.push(record(exchange, parsed, answer));
    send(response, request.method === 'HEAD', answer);
  });
}

export function connection(host: string): Recorded {
  const nothing = {
    path: '',
    ns: '',
    object: '',
    authorization: '',
    headers: '',
    tokenRequest: '',
    leadsTo: '',
  };
  return { ...nothing, scheme: 'https', host, method: 'CONNECT', kind: 'connection', status: 'dropped' };
}

interface ParsedRequest {
  readonly url: URL;
  readonly form: URLSearchParams;
  readonly repository: string | undefined;
  readonly kind: string | undefined;
  readonly object: string | undefined;
}

function record({ scheme, host, request }: Exchange, parsed: ParsedRequest, answer: Answer): Recorded {
  const { url, kind, object } = parsed;
  const token = url.pathname === '/token';
  return {
    scheme,
    host,
    method: request.method ?? '',
    path: url.pathname,
    ns: url.searchParams.get('ns') ?? '',
    kind: token ? 'token' : kind === 'manifests' || kind === 'blobs' ? kind : 'other',
    object: object ?? '',
    authorization: describeAuthorization(request.headers.authorization),
    headers: Object.entries(request.headers)
      .filter(([name]) => name.startsWith('x-'))
      .map(([name, value]) => `${name}=${String(value)}`)
      .sort()
      .join(' '),
    tokenRequest: token ? describeToken(parsed, request) : '',
    status: answer.status,
    leadsTo: URL.parse(answer.headers?.['location'] ?? '')?.host ?? '',
  };
}

function describeAuthorization(header: string | undefined): string {
  if (header === undefined) return 'none';
  const basic = readBasic(header);
  if (basic) return `basic ${basic.username}${isKnown(basic) ? '' : ' (wrong)'}`;
  const token = readToken(header);
  return token ? `bearer ${token.user || 'nobody'} of ${token.host}` : header;
}

function describeToken({ url, form }: ParsedRequest, request: IncomingMessage): string {
  const basic = readBasic(request.headers.authorization ?? '');
  const given = request.method === 'POST' ? form : url.searchParams;
  const user =
    request.method === 'POST'
      ? (form.get('username') ?? `refresh ${form.get('refresh_token')}`)
      : basic?.username;
  return `${user ?? 'nobody'} ${given.get('service') ?? ''} ${given.getAll('scope').join(' ')}`;
}

function tokenAnswer({ host, request, behavior }: Exchange, { url, form }: ParsedRequest): Answer {
  const { post = true, anonymous = false } = behavior ?? {};
  if (request.method === 'POST' && !post) return { status: 405 };
  const given = request.method === 'POST' ? form : url.searchParams;
  const who =
    request.method === 'POST'
      ? { username: form.get('username') ?? '', password: form.get('password') ?? '' }
      : readBasic(request.headers.authorization ?? '');
  if (who && !isKnown(who)) return { status: 401 };
  const scopes = given.getAll('scope').join(' ');
  const may = who !== undefined || anonymous;
  const token = `of ${host} for ${who?.username ?? ''} scopes ${may ? scopes : ''}`;
  const member = request.method === 'POST' ? 'access_token' : 'token';
  const body = { [member]: `t.${Buffer.from(token).toString('base64url')}`, expires_in: 300 };
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(body)),
  };
}

function objectAnswer(exchange: Exchange, parsed: ParsedRequest): Answer {
  const { behavior, request, stock } = exchange;
  if (!behavior) return { status: 404 };
  const refusal = authorize(exchange, behavior, parsed);
  if (parsed.url.pathname === '/v2/') return refusal ?? { status: 200 };
  if (parsed.object === undefined || parsed.repository !== stock.repository) return { status: 404 };
  if (refusal) return refusal;
  const { answer, retryAfter } = behavior;
  if (answer === 429 && retryAfter !== undefined)
    return { status: answer, headers: { 'retry-after': retryAfter } };
  if (typeof answer === 'number') return { status: answer };
  if (answer === 'drop') return { status: 'dropped' };
  if (answer === 'absent') return { status: 404 };
  const get = request.method === 'GET';
  if (answer === 'no-head' && !get) return { status: 405 };
  if (answer === 'get-500' && get) return { status: 500 };
  if (answer === 'redirect') {
    return { status: 307, headers: { location: `https://${behavior.redirectTo}${request.url}` } };
  }
  const objects = behavior.stale ? (stock.staleObjects ?? stock.objects) : stock.objects;
  const content = objects.get(parsed.object);
  if (!content) return { status: 404 };
  const headers = {
    'content-type': parsed.kind === 'blobs' ? 'application/octet-stream' : content.mediaType,
    ...(answer === 'no-digest' ? {} : { 'docker-content-digest': content.digest }),
  };
  if (get && parsed.kind === 'manifests' && answer === 'forged') {
    const body = Buffer.from(content.bytes);
    body[body.length - 1] = 0x20;
    return { status: 200, headers, body };
  }
  if (get && parsed.kind === 'manifests' && answer === 'cut') {
    return { status: 200, headers, body: content.bytes.subarray(0, 20), length: content.bytes.length };
  }
  return { status: 200, headers, body: content.bytes };
}

function authorize(
  { scheme, host, request, stock }: Exchange,
  behavior: Behavior,
  { url }: ParsedRequest,
): Answer | undefined {
  const header = request.headers.authorization ?? '';
  if (behavior.auth === 'open') return undefined;
  if (behavior.auth === 'unusable') return { status: 401 };
  if (behavior.auth === 'basic') {
    const basic = readBasic(header);
    return basic && isKnown(basic)
      ? undefined
      : { status: 401, headers: { 'www-authenticate': 'Basic realm="test"' } };
  }
  const realm = {
    bearer: `${scheme}://${host}/token`,
    'bearer-elsewhere': 'https://auth.example/token',
    'bearer-plain-realm': `http://${behavior.plainRealm}/token`,
  }[behavior.auth];
  const issuer = URL.parse(realm)?.host;
  const token = readToken(header);
  const path = /^\/v2\/(.+)\/(?:manifests|blobs)\//.exec(url.pathname)?.[1];
  const scope = `repository:${(stock.scopeOfPath && path) ?? stock.repository}:pull`;
  if (token && token.host === issuer && token.scopes.split(' ').includes(scope)) return undefined;
  const challenge = `Bearer realm="${realm}",service="${host}",scope="${scope}"`;
  return { status: 401, headers: { 'www-authenticate': challenge } };
}

function readBasic(header: string): { username: string; password: string } | undefined {
  const encoded = /^basic (.+)$/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const [username = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  return { username, password: password.join(':') };
}

function readToken(header: string): { host: string; user: string; scopes: string } | undefined {
  const encoded = /^bearer t\.(.+)$/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64url').toString();
  const [, host = '', user = '', scopes = ''] = /^of (\S+) for (\S*) scopes (.*)$/.exec(text) ?? [];
  return { host, user, scopes };
}

function isKnown({ username, password }: { username: string; password: string }): boolean {
  return username === knownUser.username && password === knownUser.password;
}

function send(response: ServerResponse, head: boolean, { status, headers, body, length }: Answer): void {
  if (status === 'dropped') {
    response.socket?.destroy();
    return;
  }
  const bytes = body ?? Buffer.from(status >= 400 ? '{"errors":[]}' : '');
  response.writeHead(status, { 'content-length': String(length ?? bytes.length), ...headers });
  if (head) response.end();
  else if (length === undefined) response.end(bytes);
  else response.write(bytes, () => response.socket?.destroy());
}
