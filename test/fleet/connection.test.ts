import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { unlessAborted } from '../../src/async/wait.ts';
import { AgentError, createConnection, type AgentErrorCode } from '../../src/fleet/connection.ts';
import { openTlsFiles, type TlsSource } from '../../src/serving/tls-files.ts';
import { silentLog } from '../support/captured.ts';
import { writeTls } from '../serving/support.ts';
import { createCa } from '../support/certificates.ts';
import { clientNames, connect, createPki, serverNames, startScripted, type ServerScript } from './support.ts';
import { until } from '../support/until.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

const call = { signal: neverAborted, maxBytes: 10_000, body: { images: [], deadlineMs: 1 } };

/** An agent, a connection to it, and a request on that connection. */
async function setup(t: Test, script: ServerScript = {}, options?: Parameters<typeof connect>[2]) {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, script);
  const connection = await connect(t, pki, options);
  const ask = (signal = neverAborted): Promise<unknown> =>
    connection.json(agent.url, '/v1/facts', { ...call, signal });
  return { pki, agent, connection, ask };
}

/** Expects this error. */
async function fails(
  t: Test,
  promise: Promise<unknown>,
  code: AgentErrorCode,
  message: RegExp,
): Promise<void> {
  const error = await promise.catch((reason: unknown) => reason);
  t.ok(error instanceof AgentError, 'an AgentError');
  like(t, error, { code, message });
}

t.test('requests and responses are JSON, over one connection', async (t) => {
  const { agent, connection, ask } = await setup(t, { facts: (body) => ({ echo: body }) });
  for (let count = 0; count < 3; count += 1) t.strictSame(await ask(), { echo: call.body });
  t.equal(agent.connections(), 1);
  like(t, await connection.json(agent.url, '/v1/info', { signal: neverAborted, maxBytes: 1000 }), {
    credentialFingerprint: 'same',
  });
});

t.test('a request waits for the first client certificate', async (t) => {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki);
  const files = await openTlsFiles({ dir: pki.clientDir, ca: true, use: 'client', log: silentLog });
  const first = Promise.withResolvers<void>();
  const listeners: (() => void)[] = [];
  let isIssued = false;
  const tls: TlsSource = {
    current: () => (isIssued ? files.current() : undefined),
    onChange: (listener) => void listeners.push(listener),
    ready: (signal) => unlessAborted(first.promise, signal),
    problem: () => 'Secret a/b: it does not exist',
    close: files.close,
  };
  const connection = createConnection({ tls, serverNameOf: () => 'archwright-agent' });
  t.teardown(() => connection.close());
  const ask = (signal: AbortSignal) => connection.json(agent.url, '/v1/info', { signal, maxBytes: 1000 });
  await fails(
    t,
    ask(AbortSignal.abort()),
    'unreachable',
    /^no client certificate for agents: Secret a\/b: it does not exist$/,
  );
  const answer = ask(neverAborted);
  isIssued = true;
  for (const listener of listeners) listener();
  first.resolve();
  t.ok(await answer);
});

t.test('the certificate of an agent must name its node', async (t) => {
  const pki = await createPki(t);
  const issue = (name: string) => ({ cn: 'archwright-agent', dns: [name], server: true });
  const start = (name: string) =>
    startScripted(t, { ...pki, ca: { ...pki.ca, issue: () => pki.ca.issue(issue(name)) } });
  const [one, two, shared] = [
    await start('n1.archwright-agent'),
    await start('n2.archwright-agent'),
    await start('archwright-agent'),
  ];
  const names = new Map([one, two, shared].map(({ url }) => [url, 'n1.archwright-agent']));
  const serverNameOf = (url: string): string => names.get(url) ?? '';
  const connection = await connect(t, pki, { serverNameOf });
  const info = { signal: neverAborted, maxBytes: 1000 };
  t.ok(await connection.json(one.url, '/v1/info', info));
  await fails(t, connection.json(two.url, '/v1/info', info), 'unreachable', /altnames/i);
  await fails(t, connection.json(shared.url, '/v1/info', info), 'unreachable', /altnames/i);
  t.strictSame([two.requests, shared.requests], [[], []], 'they received no request, so no pull secret');
  names.set(two.url, 'n2.archwright-agent');
  t.ok(await connection.json(two.url, '/v1/info', info), 'each agent is verified by its own name');
});

t.test('certificates that do not verify are refused', async (t) => {
  const pki = await createPki(t);
  const foreign = await createCa('archwright test CA');
  const cases: [string, Parameters<typeof pki.dir>[0], RegExp][] = [
    ['another name', { cn: 'archwright-agent', dns: ['other'], server: true }, /altnames/i],
    [
      'the address instead of the name',
      { cn: '127.0.0.1', ip: ['127.0.0.1'], server: true },
      /altnames|match/i,
    ],
    ['expired', { ...serverNames, notAfter: new Date(Date.now() - 1000) }, /expired/],
    ['for clients only', { ...serverNames, server: false, client: true }, /purpose/],
  ];
  for (const [name, issue, message] of cases) {
    await t.test(name, async (t) => {
      const agent = await startScripted(t, { ...pki, ca: { ...pki.ca, issue: () => pki.ca.issue(issue) } });
      const connection = await connect(t, pki);
      await fails(t, connection.json(agent.url, '/v1/facts', call), 'unreachable', message);
      t.equal(agent.requests.length, 0);
    });
  }
  await t.test('another CA of the same name', async (t) => {
    const agent = await startScripted(t, { ...pki, ca: foreign });
    const answer = (await connect(t, pki)).json(agent.url, '/v1/facts', call);
    await fails(t, answer, 'unreachable', /verify|signature|issuer|self/i);
  });
  await t.test('an intermediate CA is trusted as it is configured', async (t) => {
    const ca = await foreign.intermediate('ours');
    const dir = await pki.dir(clientNames, { trusts: ca });
    const agent = await startScripted(t, { ...pki, ca: { ...ca, cert: pki.ca.cert } });
    t.ok(await (await connect(t, pki, { dir })).json(agent.url, '/v1/info', call));
    const beside = await foreign.intermediate('of others');
    const other = await startScripted(t, { ...pki, ca: { ...beside, cert: pki.ca.cert } });
    const answer = (await connect(t, pki, { dir })).json(other.url, '/v1/facts', call);
    await fails(t, answer, 'unreachable', /issuer|verify/i);
  });
  await t.test('a client certificate that the agent refuses', async (t) => {
    const agent = await startScripted(t, pki);
    const connection = await connect(t, pki, { dir: await pki.dir(clientNames, { issuer: foreign }) });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'unreachable', /was lost/);
    t.equal(agent.requests.length, 0);
  });
});

t.test('an abort ends a request with a timeout', async (t) => {
  for (const write of [
    undefined,
    (response: ServerResponse, done: () => void) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{', () => setImmediate(done));
    },
  ]) {
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    const { ask } = await setup(t, { facts: (_, response) => (write ? write(response, abort) : abort()) });
    await fails(t, ask(stop.signal), 'timeout', /in time/);
  }
  const { agent, ask } = await setup(t);
  await fails(t, ask(AbortSignal.abort()), 'timeout', /in time/);
  t.equal(agent.requests.length, 0, 'nothing is sent');
});

t.test('an agent that is silent, or has ended, is unreachable', async (t) => {
  const silent = await setup(t, { facts: () => undefined }, { limits: { headerMs: 50 } });
  await fails(t, silent.ask(), 'unreachable', /^127\.0\.0\.1:\d+ cannot be reached: .*longer than 50 ms/);
  const { agent, ask } = await setup(t);
  await agent.stop();
  await fails(t, ask(), 'unreachable', /^127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/);
});

t.test('a request on a stale connection is sent again on a new one', async (t) => {
  const { agent, ask } = await setup(t, {
    facts: (body, _, request) => {
      // The server closes the idle connection as the second request arrives.
      if (agent.requests.length === 2) return void request.socket.destroy();
      return body;
    },
  });
  await ask();
  await ask();
  t.equal(agent.requests.length, 3);
  t.equal(agent.connections(), 2);
});

t.test('a renewed certificate serves new connections, and running requests finish', async (t) => {
  const names: unknown[] = [];
  let release: (() => void) | undefined;
  const script: ServerScript = {
    facts: (body, response, request) => {
      const socket = request.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } };
      names.push(socket.getPeerCertificate().subject.CN);
      if (names.length !== 2) return body;
      release = () => response.end('{"late":true}');
      return undefined;
    },
  };
  const { pki, agent, ask } = await setup(t, script, { pollMs: 10 });
  await ask();
  const late = ask();
  await until(() => release !== undefined);
  const next = await pki.ca.issue({ cn: 'archwright-controller', client: true });
  await writeTls(pki.clientDir, next, pki.ca.cert);
  await until(async () => {
    await ask();
    return names.at(-1) === 'archwright-controller';
  });
  t.equal(await agent.open(), 2);
  release?.();
  t.strictSame(await late, { late: true });
  await until(async () => (await agent.open()) <= 1);
  t.equal(await agent.open(), 1, 'the connection with the old certificate was closed after its answer');
});

t.test('each HTTP status has an error code', async (t) => {
  const cases: [number, AgentErrorCode][] = [
    [400, 'bad-answer'],
    [401, 'failed'],
    [403, 'failed'],
    [404, 'bad-answer'],
    [408, 'failed'],
    [413, 'bad-answer'],
    [429, 'failed'],
    [500, 'failed'],
    [503, 'failed'],
    [301, 'bad-answer'],
    [204, 'bad-answer'],
  ];
  let status = 200;
  const { ask } = await setup(t, {
    facts: (_, response) => {
      response.writeHead(status, { location: 'https://elsewhere.example' });
      response.end(status === 204 ? undefined : '{"error":{"code":"x","message":"because"}}');
    },
  });
  for (const [next, code] of cases) {
    status = next;
    const message = `the agent answered ${next}${next === 204 ? '' : ': because'}`;
    await t.rejects(ask(), { code, message });
  }
});

t.test('a response without a usable message is reported by its status', async (t) => {
  const texts = ['', 'no JSON', 'null', '{}', '{"error":null}', '{"error":{"message":1}}'];
  const { agent, ask } = await setup(t, {
    facts: (_, response) => void response.writeHead(500).end(texts[agent.requests.length - 1]),
  });
  for (const text of texts) await t.rejects(ask(), { message: 'the agent answered 500' }, text);
});

t.test('malformed, oversized and truncated responses are refused', async (t) => {
  const cases: [(response: ServerResponse) => unknown, AgentErrorCode, RegExp][] = [
    [(response) => response.end('<html>'), 'bad-answer', /not JSON/],
    [(response) => response.end('x'.repeat(20_000)), 'bad-answer', /larger than 10000 bytes/],
    [
      (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      'bad-answer',
      /compressed/,
    ],
    [(response) => response.writeHead(500).end('x'.repeat(100_000)), 'bad-answer', /larger than 8192 bytes/],
    [
      (response) => response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy()),
      'unreachable',
      /during the response/,
    ],
  ];
  const { agent, ask } = await setup(t);
  for (const [write, code, message] of cases) {
    agent.script.facts = (_, response) => void write(response);
    await fails(t, ask(), code, message);
  }
});

t.test('lines are read whole, and bounded', async (t) => {
  const { agent, connection } = await setup(t);
  async function read(write: (response: ServerResponse) => unknown, maxBytes = 100_000) {
    agent.script.known = (response) => void write(response);
    const lines: string[] = [];
    try {
      for await (const line of connection.lines(agent.url, '/v1/facts', { signal: neverAborted, maxBytes }))
        lines.push(line);
    } catch (error) {
      return { lines, code: (error as AgentError).code };
    }
    return { lines };
  }
  t.strictSame(await read((response) => response.end('a\n\nbé\n')), { lines: ['a', 'bé'] });
  like(t, await read((response) => response.end('a\nb')), { lines: ['a'], code: 'unreachable' });
  like(t, await read((response) => response.end('a\n'.repeat(100)), 50), { code: 'bad-answer' });
  like(t, await read((response) => response.end('x'.repeat(70_000))), { code: 'bad-answer' });
  like(t, await read((response) => response.writeHead(503).end()), { code: 'failed' });
});
