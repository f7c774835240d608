import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { AgentError } from '../../../src/fleet/agents/agent-error.ts';
import { connect, createPki, startScripted } from '../support.ts';
import { call, fails, never } from './connection-setup.ts';

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
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'bad-answer', /larger than 10000 bytes/);
  });
  await t.test('too much of an error', async (t) => {
    const agent = await startScripted(t, pki, {
      facts: (_, response) => void response.writeHead(500).end('x'.repeat(100_000)),
    });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'bad-answer', /larger than 8192 bytes/);
  });
  await t.test('less than it announced', async (t) => {
    const agent = await startScripted(t, pki, {
      facts: (_, response) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('{"results":', () => response.destroy());
      },
    });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /within the response/);
  });
  await t.test('nothing at all', async (t) => {
    const agent = await startScripted(t, pki, { facts: (_, response) => void response.destroy() });
    await fails(t, connection.json(agent.url, '/v1/facts', call), 'lost', /was lost/);
  });
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
