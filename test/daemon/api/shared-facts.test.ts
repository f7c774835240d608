import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { once } from 'node:events';
import t from 'tap';
import type { FactsOptions } from '../../../daemon/api/facts.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { factsOf } from '../../fleet/support.ts';
import { startTestAgent } from '../support.ts';

const ask = (...images: string[]) => ({
  images: images.map((image) => ({ image, pullPolicy: 'IfNotPresent' })),
  deadlineMs: 5000,
});

t.test('one line for each image', async (t) => {
  const { post, send } = await startTestAgent(t);
  await post(ask('r.example/a:1', 'nginx'));
  const answer = await send('GET', '/v1/facts');
  t.equal(answer.status, 200);
  t.equal(answer.headers['content-type'], 'application/x-ndjson');
  const known = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { image: string });
  t.strictSame(known.map((facts) => facts.image).sort(), ['docker.io/library/nginx:latest', 'r.example/a:1']);
});

t.test('a reader that ends makes room, also after HEAD', async (t) => {
  const { send } = await startTestAgent(t, { limits: { factsStreams: 1 } });
  for (const method of ['GET', 'HEAD', 'GET', 'GET']) {
    t.equal((await send(method, '/v1/facts')).status, 200, method);
  }
});

t.test('a memory that fails while it is read', async (t) => {
  const failing = function* () {
    yield factsOf('r.example/a:1');
    throw new Error('boom');
  };
  const { send, lines } = await startTestAgent(t, { memory: sharing(failing, 5) });
  await t.rejects(send('GET', '/v1/facts'), { code: 'ECONNRESET' });
  t.match(lines(), /sending image facts failed/);
  t.equal((await send('GET', '/v1/info')).status, 200);
});

/** A memory that shares these facts. */
function sharing(shared: () => Iterable<ImageFacts>, size: number): FactsOptions['memory'] {
  return { shared, size, lookup: ({ image }) => Promise.resolve(factsOf(image)) };
}

t.test('facts from a pod’s own credentials are not sent, even if the memory shares them', async (t) => {
  const memory = sharing(
    () => [
      factsOf('r.example/a:1', { credentialSource: 'pull-secret' }),
      factsOf('r.example/c:1', { credentialSource: 'service-account' }),
      factsOf('r.example/b:1'),
    ],
    3,
  );
  const { send } = await startTestAgent(t, { memory });
  t.match((await send('GET', '/v1/facts')).text, /^\{"image":"r\.example\/b:1".*\}\n$/);
});

t.test('the stream has limits, and ends with a whole line', async (t) => {
  const endless = function* () {
    for (let count = 0; ; count += 1) yield factsOf(`r.example/a:${count}`);
  };
  await t.test('in bytes', async (t) => {
    const { send } = await startTestAgent(t, {
      memory: sharing(endless, Number.MAX_SAFE_INTEGER),
      limits: { maxStreamBytes: 100_000 },
    });
    const { text } = await send('GET', '/v1/facts');
    t.ok(text.length > 99_000 && text.length <= 100_000, `${text.length}`);
    t.ok(text.endsWith('}\n'));
  });
  await t.test('in number, when memory changes while it is read', async (t) => {
    const { send } = await startTestAgent(t, { memory: sharing(endless, 50) });
    t.equal((await send('GET', '/v1/facts')).text.split('\n').length - 1, 50);
  });
});

t.test('a reader that does not read is disconnected, and readers are limited', async (t) => {
  let told = 0;
  const endless = function* () {
    for (;;) {
      told += 1;
      yield factsOf(`r.example/a:${told}`);
    }
  };
  const { agent, pki, send } = await startTestAgent(t, {
    memory: sharing(endless, Number.MAX_SAFE_INTEGER),
    limits: { factsStreams: 1, streamTimeoutMs: 200, maxStreamBytes: Number.MAX_SAFE_INTEGER },
  });
  const [cert, key] = await Promise.all(
    ['tls.crt', 'tls.key'].map((name) => readFile(join(pki.clientDir, name))),
  );
  const lazy = request(`${agent.url}/v1/facts`, {
    servername: 'archwright-agent',
    ca: pki.ca.cert,
    agent: false,
    ...(cert && { cert }),
    ...(key && { key }),
  });
  lazy.on('error', () => {});
  lazy.end();
  const [response] = (await once(lazy, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  const second = await send('GET', '/v1/facts');
  t.equal(second.status, 503);
  t.equal(second.headers['retry-after'], '1');
  t.match(second.json, { error: { code: 'overloaded' } });
  const before = told;
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(told < 200_000, `back-pressure holds: ${told}, ${before}`);
  // Cut off by the agent, not by us.
  await new Promise((resolve) => response.resume().once('close', resolve));
  t.notOk(response.complete);
  let status = 503;
  while (status === 503) {
    const again = await send('GET', '/v1/info');
    status = again.status;
  }
  t.equal(status, 200);
});
