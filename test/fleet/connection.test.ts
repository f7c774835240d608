import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { AgentError } from '../../src/fleet/agent-error.ts';
import { createCa } from '../support/certificates.ts';
import { clientNames, connect, createPki, serverNames, startScripted, until, writeTls } from './support.ts';

const never = new AbortController().signal;
const call = { signal: never, maxBytes: 10_000, body: { images: [], deadlineMs: 1 } };

/** Asks and expects this error. */
async function fails(
  t: Test,
  promise: Promise<unknown>,
  code: AgentError['code'],
  message: RegExp,
): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  t.ok(error instanceof AgentError, 'an AgentError');
  t.match(error, { code, message });
}

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
  await t.test('a client that the agent does not believe', async (t) => {
    const agent = await startScripted(t, pki);
    const connection = await connect(t, pki, { dir: await pki.dir(clientNames, { issuer: foreign }) });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /was lost/);
    t.equal(agent.asked.length, 0);
  });
});

t.test('statuses', async (t) => {
  const pki = await createPki(t);
  const connection = await connect(t, pki);
  const cases: [number, AgentError['code'], boolean][] = [
    [400, 'rejected', false],
    [401, 'refused', true],
    [403, 'refused', true],
    [404, 'rejected', false],
    [408, 'overloaded', true],
    [413, 'rejected', false],
    [429, 'overloaded', true],
    [500, 'overloaded', true],
    [503, 'overloaded', true],
    [301, 'bad-answer', true],
    [204, 'bad-answer', true],
  ];
  let status = 200;
  const agent = await startScripted(t, pki, {
    facts: (_, response) => {
      response.writeHead(status, { location: 'https://elsewhere.example' });
      response.end(status === 204 ? undefined : '{"error":{"code":"x","message":"because"}}');
    },
  });
  for (const [next, code, temporary] of cases) {
    status = next;
    const error = await connection.json(agent.url, '/v1/facts', call).catch((reason: unknown) => reason);
    t.match(
      error,
      { code, temporary, where: agent.url, message: new RegExp(`answered ${next}`) },
      String(next),
    );
    if (next !== 204) t.match(error, { message: /: because$/ });
  }
});

t.test('an error without a message', async (t) => {
  const pki = await createPki(t);
  const connection = await connect(t, pki);
  const texts = ['', 'no JSON', 'null', '{}', '{"error":null}', '{"error":{"message":1}}'];
  const agent = await startScripted(t, pki, {
    facts: (_, response) => {
      response.writeHead(500).end(texts[agent.asked.length - 1]);
    },
  });
  for (const text of texts) {
    const error = await connection.json(agent.url, '/v1/facts', call).catch((reason: unknown) => reason);
    t.match(error, { message: 'the agent answered 500' }, text);
  }
});

t.test('what an agent may not send', async (t) => {
  const pki = await createPki(t);
  const connection = await connect(t, pki);
  await t.test('no JSON', async (t) => {
    const agent = await startScripted(t, pki, { facts: (_, response) => void response.end('<html>') });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'bad-answer', /not JSON/);
  });
  await t.test('too much, without end', async (t) => {
    const agent = await startScripted(t, pki, {
      facts: (_, response) => {
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(4096)));
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      },
    });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'bad-answer', /more than 10000 bytes/);
  });
  await t.test('too much of an error', async (t) => {
    const agent = await startScripted(t, pki, {
      facts: (_, response) => void response.writeHead(500).end('x'.repeat(100_000)),
    });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'bad-answer', /more than 8192 bytes/);
  });
  await t.test('less than it announced', async (t) => {
    const agent = await startScripted(t, pki, {
      facts: (_, response) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('{"results":', () => response.destroy());
      },
    });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /within the answer/);
  });
  await t.test('nothing at all', async (t) => {
    const agent = await startScripted(t, pki, { facts: (_, response) => void response.destroy() });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /was lost/);
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
      /no connection to .* within 20 ms/,
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
  while ((await agent.open()) > 1) await new Promise((resolve) => setImmediate(resolve));
  t.pass('the connection with the old certificate was closed after its answer');
});

t.test('lines', async (t) => {
  const pki = await createPki(t);
  const connection = await connect(t, pki);
  async function read(write: (response: ServerResponse) => void, maxBytes = 100_000) {
    const agent = await startScripted(t, pki, { known: write });
    const lines: string[] = [];
    let error: unknown;
    try {
      for await (const line of connection.lines(agent.url, '/v1/facts', { signal: never, maxBytes })) {
        lines.push(line);
      }
    } catch (reason) {
      error = reason;
    }
    return { lines, error: error as AgentError | undefined };
  }
  t.strictSame(await read((response) => void response.end('')), { lines: [], error: undefined });
  t.strictSame(await read((response) => void response.end('a\n\nbé\n')), {
    lines: ['a', 'bé'],
    error: undefined,
  });
  const split = await read((response) => {
    const bytes = Buffer.from('aé\nb\n');
    response.write(bytes.subarray(0, 2), () => response.end(bytes.subarray(2)));
  });
  t.strictSame(split, { lines: ['aé', 'b'], error: undefined });
  t.match(await read((response) => void response.end('a\nb')), { lines: ['a'], error: { code: 'lost' } });
  t.match(await read((response) => void response.end('a\n'.repeat(100)), 50), {
    error: { code: 'bad-answer' },
  });
  t.match(await read((response) => void response.end('x'.repeat(70_000))), { error: { code: 'bad-answer' } });
  t.match(await read((response) => void response.writeHead(503).end()), { error: { code: 'overloaded' } });
  const cut = await read((response) => void response.write('a\n', () => response.destroy()));
  t.match(cut, { error: { code: 'lost' } });
});

t.test('files that cannot be used', async (t) => {
  const pki = await createPki(t);
  await t.rejects(connect(t, pki, { dir: '/nonexistent' }), { code: 'tls-files' });
});
