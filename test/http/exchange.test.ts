/** Exchanges over a plain server: repetition, limits, bodies. */
import { Agent, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { readBeginning, readBody, readLines } from '../../src/http/body.ts';
import {
  openExchange,
  retirePool,
  type ExchangeRequest,
  type OpenResponse,
} from '../../src/http/exchange.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { listen } from '../support/listen.ts';
import { like } from '../support/like.ts';
import { TransportError, transportError } from '../../src/http/transport-error.ts';

async function setUp(
  t: Test,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  maxSockets = 9,
) {
  const requests: IncomingMessage[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  }).on('connection', () => (connections += 1));
  const port = await listen(server);
  const pool = new Agent({ keepAlive: true, maxSockets });
  t.teardown(() => {
    pool.destroy();
    server.close().closeAllConnections();
  });
  const url = new URL(`http://127.0.0.1:${port}/path?a=b`);
  const open = (changes: Partial<ExchangeRequest> = {}, signal = neverAborted): Promise<OpenResponse> =>
    openExchange(
      { method: 'GET', url, headers: {}, pool, limits: { dialMs: 5000 }, repeatable: true, ...changes },
      signal,
    );
  return { open, pool, requests, connections: () => connections };
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => 'no error',
    (error: unknown) => error,
  );
}

t.test('a request on a stale connection is repeated, unless it may change something', async (t) => {
  const { open, requests, connections } = await setUp(t, (request, response) => {
    if (requests.length % 3 === 2) request.socket.destroy();
    else response.end('body');
  });
  for (const repeatable of [true, false]) {
    t.equal(String(await readBody(await open({ method: 'POST', body: 'x' }), 9)), 'body');
    const second = open({ method: 'POST', body: 'x', repeatable }).then((response) => readBody(response, 9));
    if (repeatable) t.equal(String(await second), 'body');
    else like(t, await failure(second), { failure: 'closed', phase: 'header' });
  }
  t.equal(requests.length, 5);
  t.equal(connections(), 2);
});

t.test('time in the queue of the pool does not count towards the limits', async (t) => {
  const { open } = await setUp(
    t,
    (_request, response) => {
      response.write('a');
      setTimeout(() => response.end('b'), 600);
    },
    1,
  );
  const limits = { dialMs: 500, headerMs: 500, idleMs: 20_000 };
  const bodies = [1, 2, 3].map(async () => String(await readBody(await open({ limits }), 9)));
  t.strictSame(await Promise.all(bodies), ['ab', 'ab', 'ab']);
});

t.test('each phase of an exchange has a limit', async (t) => {
  const { open } = await setUp(t, (request, response) => {
    if (request.headers['x-header'] === 'yes') response.write('a');
  });
  const cases = [
    [{ headerMs: 20 }, {}, 'header-timeout', 'header'],
    [{ totalMs: 20 }, {}, 'total-timeout', 'header'],
    [{ idleMs: 20 }, { 'x-header': 'yes' }, 'idle-timeout', 'body'],
    [{ totalMs: 1500 }, { 'x-header': 'yes' }, 'total-timeout', 'body'],
  ] as const;
  for (const [limit, headers, failed, phase] of cases) {
    const limits = { dialMs: 5000, ...limit };
    const read = open({ limits, headers }).then((response) => readBody(response, 9));
    like(t, await failure(read), { failure: failed, phase }, `${failed} ${phase}`);
  }
  const stop = new AbortController();
  const opened = await open({ headers: { 'x-header': 'yes' } }, stop.signal);
  stop.abort(new Error('enough'));
  const aborted = await failure(readBody(opened, 9));
  like(t, aborted, { failure: 'aborted', phase: 'body', cause: { message: 'enough' } });
  like(t, await failure(open({}, stop.signal)), { failure: 'aborted', phase: 'connect' });
});

t.test('a body can be read completely, up to a limit, or by line', async (t) => {
  const { open, connections } = await setUp(t, (request, response) => {
    const { 'x-encoding': encoding } = request.headers;
    if (encoding !== undefined) response.setHeader('content-encoding', encoding);
    response.end('one\n\ntwo é\nthree');
  });
  t.equal((await readBody(await open(), 17)).length, 17);
  t.equal(String(await readBeginning(await open(), 5)), 'one\n\n');
  for (const read of [
    (response: OpenResponse) => readBody(response, 16),
    (response: OpenResponse) => collect(response, { maxLineBytes: 99, maxBytes: 16 }),
    (response: OpenResponse) => collect(response, { maxLineBytes: 3 }),
  ]) {
    like(t, await failure(read(await open())), { failure: 'too-large' });
  }
  like(t, await failure(readBody(await open({ headers: { 'x-encoding': 'gzip' } }), 99)), {
    failure: 'encoded',
  });
  let admitted = 0;
  const admit = () => Promise.resolve(void (admitted += 1));
  await readBody(await open(), 99, { afterBytes: 17, admit });
  t.equal(admitted, 0);
  await readBody(await open(), 99, { afterBytes: 16, admit });
  t.ok(admitted > 0, 'a large body is read as it is admitted');
  const lines: string[] = [];
  const cut = collect(await open(), { maxLineBytes: 5 }, lines);
  like(t, await failure(cut), { failure: 'closed', message: /ended in the middle of a line/ });
  t.strictSame(lines, ['one', 'two é']);
  like(t, await failure(collect(await open(), { maxLineBytes: 4 })), { failure: 'too-large' });
  t.ok(connections() > 1, 'a partly read body closes its connection');
});

t.test('a body without lines has none', async (t) => {
  const { open } = await setUp(t, (_request, response) => response.end());
  const lines: string[] = [];
  await collect(await open(), { maxLineBytes: 5 }, lines);
  t.strictSame(lines, []);
});

async function collect(
  response: OpenResponse,
  limits: Parameters<typeof readLines>[1],
  lines: string[] = [],
): Promise<void> {
  for await (const line of readLines(response, limits)) lines.push(line);
}

t.test('a retired pool closes connections when they become idle', async (t) => {
  const { open, pool, connections } = await setUp(t, (_request, response) => response.end('body'));
  const response = await open();
  retirePool(pool);
  await readBody(response, 9);
  await readBody(await open(), 9);
  t.equal(connections(), 2);
});

t.test('what beforeSend throws ends the exchange before its request', async (t) => {
  const { open, requests } = await setUp(t, (_request, response) => response.end());
  const beforeSend = () => {
    throw new Error('no leader any more');
  };
  like(t, await failure(open({ beforeSend })), {
    phase: 'connect',
    cause: { message: 'no leader any more' },
  });
  t.equal(requests.length, 0);
});

t.test('a closed response cannot be read', async (t) => {
  const { open } = await setUp(t, (_request, response) => response.write('a'));
  const limits = { dialMs: 5000, idleMs: 500 };
  t.equal(String(await readBeginning(await open({ limits }), 0)), '', 'the beginning has no end to wait for');
  const response = await open();
  response.close();
  like(t, await failure(readBody(response, 9)), { failure: 'closed' });
});

const withCode = (code: string, message = 'words of the system') =>
  Object.assign(new Error(message), { code });

t.test('each system error maps to one failure', async (t) => {
  const codes = {
    connect: 'ECONNREFUSED EHOSTUNREACH ENETUNREACH',
    'dial-timeout': 'ETIMEDOUT',
    resolve: 'ENOTFOUND EAI_AGAIN',
    closed: 'ECONNRESET EPIPE',
    tls: `DEPTH_ZERO_SELF_SIGNED_CERT UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT_LOCALLY
      CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION
      ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE`,
    'not-tls': 'ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG',
    'client-certificate': `ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE
      ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED
      ERR_SSL_TLSV1_ALERT_UNKNOWN_CA ERR_SSL_TLSV1_ALERT_ACCESS_DENIED`,
    'too-large': 'HPE_HEADER_OVERFLOW',
    garbage: 'HPE_INVALID_CONSTANT',
    invalid: 'ERR_INVALID_CHAR ERR_UNESCAPED_CHARACTERS ERR_INVALID_HTTP_TOKEN',
  };
  const cases: (readonly [error: unknown, failure: string])[] = [
    [new AggregateError([withCode('ECONNREFUSED'), withCode('ENETUNREACH')]), 'connect'],
    [new Error('aborted'), 'closed'],
    ['no error at all', 'closed'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A000410:SSL routines::alert handshake failure'), 'tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A00010B:SSL routines::wrong version number'), 'not-tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A0000C6:SSL routines::packet length too long'), 'not-tls'],
  ];
  for (const [failure, names] of Object.entries(codes)) {
    for (const code of names.split(/\s+/)) cases.push([withCode(code), failure]);
  }
  for (const [error, failure] of cases) {
    const named = transportError(error, 'registry.corp');
    like(t, named, { name: 'TransportError', failure, where: 'registry.corp' }, String(error));
    t.notMatch(named.message, /words of the system|SSL routines/);
  }
  const once = new TransportError('closed', 'here', 'words');
  t.equal(transportError(once, 'there'), once);
});

t.test('an error contains no bytes of the server', async (t) => {
  const error = Object.assign(withCode('HPE_INVALID_CONSTANT'), { rawPacket: Buffer.from('secret') });
  t.equal(transportError(error, 'registry.corp').cause, undefined);
});
