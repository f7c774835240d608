import { request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import t from 'tap';
import { createFakeClock } from '../../support/fake-clock.ts';
import type { ImageFactsSource, ImageFacts } from '../../../src/images/facts/facts.ts';
import type { FactsOptions } from '../../../daemon/api/facts.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { factsOf, failureOf } from '../../support/facts.ts';
import { until } from '../../support/until.ts';
import {
  bodyOf,
  clientTls,
  holding,
  startTestAgent,
  type FactsResponse,
  type TestAgent,
} from '../support.ts';
import { like } from '../../support/like.ts';

const numbered = (length: number) => Array.from({ length }, (_, index) => `r.example/a:${index}`);

/** A request for facts whose socket the test holds. */
async function rawRequest({ agent, pki }: TestAgent, options: RequestOptions = {}) {
  const tls = await clientTls(pki.clientDir);
  const common = { servername: 'archwright-agent', ca: pki.ca.cert, agent: false, ...tls };
  const sent = request(`${agent.url}/v1/facts`, { ...common, ...options });
  sent.on('error', () => {});
  return sent;
}

t.test('each image gets one line, also duplicates, failures and invalid references', async (t) => {
  const { post, metric } = await startTestAgent(t, {
    source: {
      lookup: ({ image }) =>
        Promise.resolve(image.includes('gone') ? failureOf(image, 'not-found') : factsOf(image)),
    },
  });
  const own = ['r.example/b:1', 'r.example/gone:1', 'Not A Reference', 'r.example/a:1', 'r.example/b:1'];
  const images = [...own, 'nginx'];
  const answer = await post(bodyOf(...images));
  t.equal(answer.status, 200);
  t.match(answer.headers['content-type'], /^application\/x-ndjson/);
  const { results } = answer.json as FactsResponse;
  const codes = [undefined, 'not-found', 'invalid-reference', undefined, undefined, undefined];
  t.strictSame(
    results.map(({ image, error }) => `${image} ${error?.code}`).sort(),
    images.map((image, index) => `${image} ${codes[index]}`).sort(),
  );
  like(
    t,
    results.find(({ image }) => image === 'nginx'),
    { platforms: [{ architecture: 'amd64' }, { architecture: 'arm64' }] },
  );
  t.equal(await metric('archwright_agent_images_total{result="ok"}'), 4);
  t.equal(await metric('archwright_agent_images_total{result="not-found"}'), 1);
  t.equal(await metric('archwright_agent_images_total{result="invalid-reference"}'), 1);
  t.equal(await metric('archwright_agent_known_images'), 4);
  t.equal(await metric('archwright_agent_request_duration_seconds_count'), 1);
  t.equal(await metric('archwright_agent_open_requests'), 0);
  const answered = 'archwright_agent_requests_total{method="POST",path="/v1/facts",outcome="answered"}';
  t.equal(await metric(answered), 1);
});

t.test('the error for a long name is truncated', async (t) => {
  const { post } = await startTestAgent(t);
  const { results } = (await post(bodyOf('X'.repeat(1000)))).json as FactsResponse;
  t.equal(results[0]?.error?.code, 'invalid-reference');
  t.ok((results[0]?.error?.message.length ?? 0) <= 1000);
});

t.test('at the deadline only images without an answer are timeouts', async (t) => {
  const { post } = await startTestAgent(t, {
    source: {
      lookup: ({ image }) =>
        image.includes('slow') ? new Promise(() => {}) : Promise.resolve(factsOf(image)),
    },
  });
  const answer = await post({ ...bodyOf('r.example/slow:1', 'r.example/a:1'), deadlineMs: 50 });
  like(t, answer.json, {
    results: [
      { error: undefined, platforms: [{}, {}] },
      { error: { code: 'timeout', message: /no answer within 50 ms/ } },
    ],
  });
});

t.test('the maximum age and pull credentials are part of the lookup', async (t) => {
  const lookups: unknown[] = [];
  const source: ImageFactsSource = {
    lookup: ({ image, namespace, maxAgeMs, pullCredentials }) => {
      lookups.push([
        image,
        namespace,
        maxAgeMs,
        pullCredentials.map(({ credential }) => [credential.username, reveal(credential.password)]),
      ]);
      return Promise.resolve(factsOf(image, { credentialSource: 'pull-secret' }));
    },
  };
  const { post, send, lines } = await startTestAgent(t, { source });
  const auths = {
    'r.example/team': { username: 'ann', password: 'secret-of-ann' },
    'r.example': [
      { username: 'bob', password: 'secret-of-bob' },
      { username: 'eve', password: 'secret-of-eve' },
    ],
    'other.example': { username: 'joe', password: 'secret-of-joe' },
  };
  const images = [{ image: 'r.example/team/app:1', maxAgeMs: 5000 }];
  await post({ images, namespace: 'shop', auths, deadlineMs: 1000 });
  const credentials = ['ann', 'bob', 'eve'].map((name) => [name, `secret-of-${name}`]);
  t.strictSame(lookups, [['r.example/team/app:1', 'shop', 5000, credentials]]);
  await post({ images: [{ image: 'r.example/team/app:1' }], deadlineMs: 1000 });
  t.equal(lookups.length, 2, 'a request without the credentials causes a new lookup');
  t.equal((await send('GET', '/v1/facts')).text, '', 'and the facts are not shared');
  t.notMatch(lines(), /secret-of/);
});

t.test('an unexpected exception is reported as an error of the image', async (t) => {
  const broken = { ...sharing(), get: () => Promise.reject(new Error('secret-detail')) };
  const { post, lines } = await startTestAgent(t, { cache: broken });
  const answer = await post(bodyOf('r.example/a:1'));
  like(t, answer.json, {
    results: [{ image: 'r.example/a:1', error: { code: 'unavailable', message: /its log says why/ } }],
  });
  t.notMatch(answer.text, /secret-detail/);
  t.match(lines(), /failed unexpectedly/);
});

t.test('a lookup continues after its client disconnects, and its facts are cached', async (t) => {
  const { held, source } = holding();
  const test = await startTestAgent(t, { source });
  const { post, metric, lines } = test;
  const headers = { 'content-type': 'application/json' };
  const sent = await rawRequest(test, { method: 'POST', headers });
  sent.end(JSON.stringify(bodyOf('r.example/a:1')));
  await until(held.isHeld);
  sent.destroy();
  const abandoned = 'archwright_agent_requests_total{method="POST",path="/v1/facts",outcome="abandoned"}';
  await until(async () => (await metric(abandoned)) !== 0);
  t.equal(await metric('archwright_agent_open_requests'), 0);
  held.release();
  like(t, (await post(bodyOf('r.example/a:1'))).json, { results: [{ digest: /^sha256:/ }] });
  t.equal(held.lookups, 1);
  t.notMatch(lines(), /failed unexpectedly/);
});

t.test('GET /v1/facts sends one line per image', async (t) => {
  const { post, send } = await startTestAgent(t);
  await post(bodyOf('r.example/a:1', 'nginx'));
  const answer = await send('GET', '/v1/facts');
  t.equal(answer.status, 200);
  t.equal(answer.headers['content-type'], 'application/x-ndjson');
  const known = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { image: string });
  t.strictSame(known.map((facts) => facts.image).sort(), ['docker.io/library/nginx:latest', 'r.example/a:1']);
});

t.test('a finished reader frees its place, also after HEAD', async (t) => {
  const { send } = await startTestAgent(t, { limits: { factsStreams: 1 } });
  for (const method of ['GET', 'HEAD', 'GET', 'GET']) {
    t.equal((await send(method, '/v1/facts')).status, 200, method);
  }
});

t.test('an exception of the cache ends the stream', async (t) => {
  const failing = function* () {
    yield factsOf('r.example/a:1');
    throw new Error('boom');
  };
  const { send, lines } = await startTestAgent(t, { cache: sharing(failing) });
  await t.rejects(send('GET', '/v1/facts'), { code: 'ECONNRESET' });
  t.match(lines(), /sending image facts failed/);
  t.equal((await send('GET', '/v1/info')).status, 200);
});

/** A cache that shares these facts. */
function sharing(shared = function* (): Generator<ImageFacts> {}): FactsOptions['cache'] {
  return { shared, size: 0, get: ({ image }) => Promise.resolve(factsOf(image)) };
}

t.test('a client that does not read its response is disconnected', async (t) => {
  const long = 'x'.repeat(63);
  const platforms = Array.from({ length: 64 }, () => ({ os: long, architecture: long, variant: long }));
  const images = numbered(800);
  let lookups = 0;
  const cache: FactsOptions['cache'] = {
    ...sharing(),
    get: ({ image }) => {
      lookups += 1;
      return Promise.resolve(factsOf(image, { platforms }));
    },
  };
  const test = await startTestAgent(t, { cache, limits: { maxUnreadBytes: 4_000_000 } });
  const headers = { 'content-type': 'application/json' };
  const lazy = await rawRequest(test, { method: 'POST', headers });
  lazy.end(JSON.stringify(bodyOf(...images)));
  const [response] = (await once(lazy, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  await until(() => lookups === images.length);
  await new Promise((resolve) => response.resume().once('close', resolve));
  t.notOk(response.complete);
  const few = (await test.post(bodyOf(...numbered(3)))).json as FactsResponse;
  t.equal(few.results.length, 3);
});

t.test('a reader that stops reading is disconnected, and readers are limited', async (t) => {
  let produced = 0;
  const endless = function* () {
    for (;;) {
      produced += 1;
      yield factsOf(`r.example/a:${produced}`);
    }
  };
  const clock = createFakeClock();
  const test = await startTestAgent(t, {
    clock: { ...clock, monotonic: () => clock.monotonic(), now: () => Date.now() },
    cache: sharing(endless),
    limits: { factsStreams: 1, streamTimeoutMs: 200, maxStreamBytes: Number.MAX_SAFE_INTEGER },
  });
  const { send } = test;
  const lazy = await rawRequest(test);
  lazy.end();
  const [response] = (await once(lazy, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  const second = await send('GET', '/v1/facts');
  t.equal(second.status, 503);
  t.equal(second.headers['retry-after'], '1');
  like(t, second.json, { error: { code: 'overloaded' } });
  const before = produced;
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(produced < 200_000, `back-pressure holds: ${produced}, ${before}`);
  await clock.advance(200);
  // The agent closed the connection.
  await new Promise((resolve) => response.resume().once('close', resolve));
  t.notOk(response.complete);
  const status = async (): Promise<number> => (await send('GET', '/v1/info')).status;
  await until(async () => (await status()) !== 503);
  t.equal(await status(), 200);
});

t.test('on a node with CRI-O, a short name is another image than the one of docker.io', async (t) => {
  for (const [name, lookups] of [
    ['containerd', ['docker.io/library/nginx:1']],
    ['cri-o', ['docker.io/library/nginx:1', 'nginx:1 nginx']],
  ] as const) {
    const asked: string[] = [];
    const { post } = await startTestAgent(t, {
      node: () => ({ runtime: { name, version: '1.36.3' } }),
      source: {
        lookup: ({ image, shortName }) => {
          asked.push([image, shortName].join(' ').trim());
          return Promise.resolve(factsOf(image));
        },
      },
    });
    await post(bodyOf('docker.io/library/nginx:1', 'nginx:1'));
    t.strictSame(asked, lookups, name);
  }
});
