import { request } from 'node:https';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { ImageFactsSource } from '../../../src/images/facts/facts.ts';
import type { FactsOptions } from '../../../daemon/api/facts.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { factsOf, failureOf, until } from '../../fleet/support.ts';
import { startTestAgent, type Answer } from '../support.ts';

const ask = (...images: string[]) => ({
  images: images.map((image) => ({ image, pullPolicy: 'IfNotPresent' })),
  deadlineMs: 5000,
});

t.test('answers in the order of the request, with duplicates, failures and invalid references', async (t) => {
  const { post, metric } = await startTestAgent(t, {
    inspector: {
      lookup: ({ image }) =>
        Promise.resolve(image.includes('gone') ? failureOf(image, 'not-found') : factsOf(image)),
    },
  });
  const images = [
    'r.example/b:1',
    'r.example/gone:1',
    'Not A Reference',
    'r.example/a:1',
    'r.example/b:1',
    'nginx',
  ];
  const answer = await post(ask(...images));
  t.equal(answer.status, 200);
  t.match(answer.headers['content-type'], /^application\/json/);
  const { results } = answer.json as Answer;
  t.strictSame(
    results.map((facts) => facts.image),
    images,
  );
  t.strictSame(
    results.map((facts) => facts.error?.code),
    [undefined, 'not-found', 'invalid-reference', undefined, undefined, undefined],
  );
  t.match(results[0], { platforms: [{ architecture: 'amd64' }, { architecture: 'arm64', variant: 'v8' }] });
  t.equal(await metric('archwright_agent_images_total{result="ok"}'), 4);
  t.equal(await metric('archwright_agent_images_total{result="not-found"}'), 1);
  t.equal(await metric('archwright_agent_images_total{result="invalid-reference"}'), 1);
  t.equal(await metric('archwright_agent_known_images'), 3);
  t.equal(await metric('archwright_agent_request_duration_seconds_count'), 1);
  t.equal(await metric('archwright_agent_open_requests'), 0);
});

t.test('the message for a long name is truncated', async (t) => {
  const { post } = await startTestAgent(t);
  const { results } = (await post(ask('X'.repeat(1000)))).json as Answer;
  t.equal(results[0]?.error?.code, 'invalid-reference');
  t.ok((results[0]?.error?.message.length ?? 0) <= 1000);
});

t.test('a thousand images', async (t) => {
  const { post } = await startTestAgent(t);
  const { results } = (await post(ask(...Array.from({ length: 1000 }, (_, index) => `r.example/a:${index}`))))
    .json as Answer;
  t.equal(results.length, 1000);
  t.notOk(results.some((facts) => facts.error));
});

t.test('concurrent lookups of one request are limited', async (t) => {
  let running = 0;
  let most = 0;
  const { post } = await startTestAgent(t, {
    limits: { concurrentImages: 5 },
    inspector: {
      lookup: async ({ image }) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return factsOf(image);
      },
    },
  });
  await post(ask(...Array.from({ length: 40 }, (_, index) => `r.example/a:${index}`)));
  t.equal(most, 5);
});

t.test('images without an answer at the deadline are timeouts, others are answered', async (t) => {
  const { post } = await startTestAgent(t, {
    inspector: {
      lookup: ({ image }) =>
        image.includes('slow') ? new Promise(() => {}) : Promise.resolve(factsOf(image)),
    },
  });
  const answer = await post({ ...ask('r.example/slow:1', 'r.example/a:1'), deadlineMs: 50 });
  t.match(answer.json, {
    results: [
      { error: { code: 'timeout', message: /no answer within 50 ms/ } },
      { error: undefined, platforms: [{}, {}] },
    ],
  });
});

t.test('the pull policy and the pull credentials reach the inspector', async (t) => {
  const asked: unknown[] = [];
  const inspector: ImageFactsSource = {
    lookup: ({ image, pullPolicy, pullCredentials }) => {
      asked.push([
        image,
        pullPolicy,
        pullCredentials.map(({ credential }) => [credential.username, reveal(credential.password)]),
      ]);
      return Promise.resolve(factsOf(image, { credentialSource: 'pull-secret' }));
    },
  };
  const { post, send, lines } = await startTestAgent(t, { inspector });
  const auths = {
    'r.example/team': { username: 'ann', password: 'secret-of-ann' },
    'r.example': [
      { username: 'bob', password: 'secret-of-bob' },
      { username: 'eve', password: 'secret-of-eve' },
    ],
    'other.example': { username: 'joe', password: 'secret-of-joe' },
  };
  await post({ images: [{ image: 'r.example/team/app:1', pullPolicy: 'Always' }], auths, deadlineMs: 1000 });
  t.strictSame(asked, [
    [
      'r.example/team/app:1',
      'Always',
      [
        ['ann', 'secret-of-ann'],
        ['bob', 'secret-of-bob'],
        ['eve', 'secret-of-eve'],
      ],
    ],
  ]);
  await post({ images: [{ image: 'r.example/team/app:1', pullPolicy: 'IfNotPresent' }], deadlineMs: 1000 });
  t.equal(asked.length, 2, 'a request without the credentials causes a new lookup');
  t.equal((await send('GET', '/v1/facts')).text, '', 'and the facts are not shared');
  t.notMatch(lines(), /secret-of/);
});

t.test('a bug of the agent is an answer too', async (t) => {
  const broken: FactsOptions['memory'] = {
    lookup: () => Promise.reject(new Error('secret-detail')),
    shared: () => [],
    size: 0,
  };
  const { post, lines } = await startTestAgent(t, { memory: broken });
  const answer = await post(ask('r.example/a:1'));
  t.match(answer.json, {
    results: [{ image: 'r.example/a:1', error: { code: 'unavailable', message: /its log says why/ } }],
  });
  t.notMatch(answer.text, /secret-detail/);
  t.match(lines(), /failed unexpectedly/);
});

t.test('a client that goes away is not waited for, and the answer it caused is kept', async (t) => {
  let release: (() => void) | undefined;
  let inspected = 0;
  const { agent, pki, post, metric, lines } = await startTestAgent(t, {
    inspector: {
      lookup: ({ image }) =>
        new Promise((resolve) => {
          inspected += 1;
          release = () => resolve(factsOf(image));
        }),
    },
  });
  const [cert, key] = await Promise.all(
    ['tls.crt', 'tls.key'].map((name) => readFile(join(pki.clientDir, name))),
  );
  const sent = request(`${agent.url}/v1/facts`, {
    method: 'POST',
    servername: 'archwright-agent',
    ca: pki.ca.cert,
    agent: false,
    headers: { 'content-type': 'application/json' },
    ...(cert && { cert }),
    ...(key && { key }),
  });
  sent.end(JSON.stringify(ask('r.example/a:1')));
  sent.on('error', () => {});
  await until(() => release !== undefined);
  sent.destroy();
  const abandoned = 'archwright_agent_requests_total{method="POST",path="/v1/facts",outcome="abandoned"}';
  await until(async () => (await metric(abandoned)) !== 0);
  t.equal(await metric('archwright_agent_open_requests'), 0);
  release?.();
  t.match((await post(ask('r.example/a:1'))).json, { results: [{ digest: /^sha256:/ }] });
  t.equal(inspected, 1);
  t.notMatch(lines(), /failed unexpectedly/);
});
