import { once } from 'node:events';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import t from 'tap';
import { createCa } from '../../support/certificates.ts';
import { clientNames, connect, createPki, serverNames, startScripted, until, writeTls } from '../support.ts';
import { call, fails, never } from './connection-setup.ts';

t.test('JSON out and in, over one connection', async (t) => {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, { facts: (asked) => ({ echo: asked }) });
  const connection = await connect(t, pki);
  for (let count = 0; count < 3; count += 1) {
    t.strictSame(await connection.json(agent.url, '/v1/facts', call), { echo: call.body });
  }
  t.equal(agent.connections(), 1);
  t.match(await connection.json(agent.url, '/v1/info', { signal: never, maxBytes: 1000 }), {
    credentialFingerprint: 'same',
  });
});

t.test('whose certificates are believed', async (t) => {
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
      t.equal(agent.asked.length, 0);
    });
  }
  await t.test('another authority of the same name', async (t) => {
    const agent = await startScripted(t, { ...pki, ca: foreign });
    const connection = await connect(t, pki);
    await fails(
      t,
      connection.json(agent.url, '/v1/facts', call),
      'unreachable',
      /verify|signature|issuer|self/i,
    );
  });
  await t.test('an authority that is no root', async (t) => {
    const ca = await foreign.intermediate('ours');
    const dir = await pki.dir(clientNames, { trusts: ca });
    const agent = await startScripted(t, { ...pki, ca: { ...ca, cert: pki.ca.cert } });
    t.ok(await (await connect(t, pki, { dir })).json(agent.url, '/v1/facts', call));
    const beside = await foreign.intermediate('of others');
    const other = await startScripted(t, { ...pki, ca: { ...beside, cert: pki.ca.cert } });
    const asked = (await connect(t, pki, { dir })).json(other.url, '/v1/facts', call);
    await fails(t, asked, 'unreachable', /issuer|verify/i);
  });
  await t.test('a client that the agent does not believe', async (t) => {
    const agent = await startScripted(t, pki);
    const connection = await connect(t, pki, { dir: await pki.dir(clientNames, { issuer: foreign }) });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /was lost/);
    t.equal(agent.asked.length, 0);
  });
});

t.test('time is up', async (t) => {
  const pki = await createPki(t);
  const connection = await connect(t, pki);
  await t.test('before the answer', async (t) => {
    const stop = new AbortController();
    const agent = await startScripted(t, pki, { facts: () => stop.abort() });
    await fails(
      t,
      connection.json(agent.url, '/v1/facts', { ...call, signal: stop.signal }),
      'timeout',
      /in time/,
    );
  });
  await t.test('within the answer', async (t) => {
    const stop = new AbortController();
    const agent = await startScripted(t, pki, {
      facts: (_, response) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('{', () => setImmediate(() => stop.abort()));
      },
    });
    const asked = connection.json(agent.url, '/v1/facts', { ...call, signal: stop.signal });
    await fails(t, asked, 'timeout', /in time/);
  });
  await t.test('before the question', async (t) => {
    const agent = await startScripted(t, pki);
    const asked = connection.json(agent.url, '/v1/facts', { ...call, signal: AbortSignal.abort() });
    await fails(t, asked, 'timeout', /in time/);
    t.equal(agent.asked.length, 0);
  });
});

t.test('no connection', async (t) => {
  const pki = await createPki(t);
  await t.test('nobody listens', async (t) => {
    const agent = await startScripted(t, pki);
    await agent.stop();
    const connection = await connect(t, pki);
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'unreachable', /ECONNREFUSED/);
  });
  await t.test('somebody listens and says nothing', async (t) => {
    const sockets: Socket[] = [];
    const server = createTcpServer((socket) => sockets.push(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const connection = await connect(t, pki, { dialTimeoutMs: 20 });
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await fails(
      t,
      connection.json(url, '/v1/facts', call),
      'unreachable',
      /cannot be reached: connecting took longer than 20 ms/,
    );
  });
});

t.test('the limit for connecting is none for answering', async (t) => {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, {
    facts: (_, response) => void setTimeout(() => response.end('{}'), 1200),
  });
  const connection = await connect(t, pki, { dialTimeoutMs: 1000 });
  t.strictSame(await connection.json(agent.url, '/v1/facts', call), {});
});

t.test('a connection that was closed while idle costs nothing', async (t) => {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, {
    facts: (asked, _, request) => {
      // The second question arrives on a connection that its server has given up.
      if (agent.asked.length === 2) return void request.socket.destroy();
      return asked;
    },
  });
  const connection = await connect(t, pki);
  await connection.json(agent.url, '/v1/facts', call);
  await connection.json(agent.url, '/v1/facts', call);
  t.equal(agent.asked.length, 3);
  t.equal(agent.connections(), 2);
});

t.test('a connection lost at its first use is not tried again', async (t) => {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, { facts: (_, response) => void response.destroy() });
  const connection = await connect(t, pki);
  await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /was lost/);
  t.equal(agent.asked.length, 1);
});

t.test('a new certificate is used for new connections, and an answer under way arrives', async (t) => {
  const pki = await createPki(t);
  const names: unknown[] = [];
  let release: (() => void) | undefined;
  const agent = await startScripted(t, pki, {
    facts: (asked, response, request) => {
      const socket = request.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } };
      names.push(socket.getPeerCertificate().subject.CN);
      if (names.length !== 2) return asked;
      release = () => response.end('{"late":true}');
      return undefined;
    },
  });
  const connection = await connect(t, pki, { pollMs: 10 });
  await connection.json(agent.url, '/v1/facts', call);
  const late = connection.json(agent.url, '/v1/facts', call);
  await until(() => release !== undefined);
  await writeTls(pki.clientDir, pki.ca, pki.ca, { cn: 'archwright-controller', client: true });
  while (names.at(-1) !== 'archwright-controller') {
    await connection.json(agent.url, '/v1/facts', call);
  }
  t.equal(await agent.open(), 2);
  release?.();
  t.strictSame(await late, { late: true });
  await until(async () => (await agent.open()) <= 1);
  t.equal(await agent.open(), 1, 'the connection with the old certificate was closed after its answer');
});

t.test('files that cannot be used', async (t) => {
  const pki = await createPki(t);
  await t.rejects(connect(t, pki, { dir: '/nonexistent' }), { code: 'tls-files' });
});
