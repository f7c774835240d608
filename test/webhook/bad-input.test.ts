import { test } from 'tap';
import { connect } from 'node:tls';
import { maxReviewBytes } from '../../src/webhook/app.ts';
import { maxValues, parsedBytes } from '../../src/webhook/review.ts';
import { send } from '../serving/support.ts';
import { withUserMs } from '../support/cpu-time.ts';
import { until } from '../support/until.ts';
import { requiring } from '../support/placement-input.ts';
import { ca, podOf, admittedOf, freshFacts, review, scripted, serve, uid } from './support.ts';
import { like } from '../support/like.ts';

const pod = podOf(['app:1']);
const valid = review({ object: pod });
const unfinished = (length: number): string =>
  `POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n{`;
/** A review with a list of this many values more. */
const withValues = (count: number): string =>
  valid.replace('"dryRun"', `"x":[0${',0'.repeat(count)}],"dryRun"`);

test('a body that is not an AdmissionReview gets 400 and a one-line reason', async (t) => {
  const { post, metric } = await serve(t);
  const without = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}';
  const cases: [what: string, body: string, message: RegExp, reason?: string][] = [
    ['nothing', '', /the body is empty/, 'not-json'],
    ['text', 'hello', /not one JSON document/, 'not-json'],
    ['half', valid.slice(0, -20), /not one JSON document/, 'not-json'],
    ['two documents', valid + valid, /not one JSON document/, 'not-json'],
    ['a list', '[]', /not an AdmissionReview/],
    ['a pod', JSON.stringify(pod), /not an AdmissionReview/],
    [
      'v1beta1',
      valid.replace('k8s.io/v1"', 'k8s.io/v1beta1"'),
      /only AdmissionReviews of admission.k8s.io\/v1/,
    ],
    ['no request', without, /no request/],
    ['no uid', valid.replace(`"uid":"${uid}",`, ''), /no usable uid/],
    ['an empty uid', valid.replace(uid, ''), /no usable uid/],
    ['an endless uid', valid.replace(uid, 'x'.repeat(300)), /no usable uid/],
    ['a uid that is not a string', valid.replace(`"${uid}"`, '7'), /no usable uid/],
    ['no kind', valid.replace('"kind":"Pod"},"res', '"x":"y"},"res'), /lacks kind or operation/],
    ['no operation', valid.replace('"operation"', '"x"'), /lacks kind or operation/],
    [
      'a namespace that is not a string',
      valid.replace('"dryRun"', '"namespace":{},"dryRun"'),
      /namespace .* not a string/,
    ],
    ['nested lists', '['.repeat(100_000) + ']'.repeat(100_000), /./, ''],
    ['unclosed lists', '['.repeat(100_000), /not one JSON document/, ''],
  ];
  for (const [what, body, message, reason = 'not-a-review'] of cases) {
    const answer = await post(body);
    t.equal(answer.status, 400, what);
    like(t, answer.body, message, what);
    t.equal(answer.body.split('\n').length, 2, `${what}: one line`);
    if (reason) t.ok((await metric(`archwright_admission_bad_requests_total{reason="${reason}"}`)) > 0, what);
  }
  t.equal((await post(valid)).status, 200, 'the next request succeeds');
});

test('only JSON content types are accepted', async (t) => {
  const { post, metric } = await serve(t);
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', '', 'application/jsonx']) {
    const answer = await post(valid, { headers: { 'content-type': type } });
    like(t, answer, { status: 400, body: /application\/json/ }, type);
  }
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  t.equal((await post(valid, { headers })).status, 200);
  t.equal(await metric('archwright_admission_bad_requests_total{reason="content-type"}'), 4);
});

test('other methods and paths are refused', async (t) => {
  const { webhook, agent, metric } = await serve(t);
  like(t, await send(`${webhook.url}/mutate`, { agent }), { status: 200, body: /warm-up ok/ }, 'a probe');
  like(t, await send(`${webhook.url}/mutate`, { agent, method: 'PUT' }), {
    status: 405,
    headers: { connection: 'close' },
  });
  t.equal((await send(`${webhook.url}/nothing`, { agent })).status, 404);
  t.equal(await metric('archwright_admission_bad_requests_total{reason="path"}'), 1);
  t.equal(await metric('archwright_admission_bad_requests_total{reason="method"}'), 1);
  like(t, await send(`${webhook.url}/healthz`, { agent }), { status: 200, body: 'ok\n' });
  like(t, await send(`${webhook.url}/readyz`, { agent }), { status: 200, body: /\[\+\]warm-up ok/ });
});

test('more than 7 MiB gets 413', async (t) => {
  const { post, metric } = await serve(t);
  t.equal(maxReviewBytes, 7 * 1024 * 1024);
  const padding = (size: number): string => valid.replace('"dryRun"', `"x":"${'y'.repeat(size)}","dryRun"`);
  const overhead = padding(0).length;
  t.equal((await post(padding(maxReviewBytes - overhead))).status, 200, 'exactly 7 MiB');
  const larger = await post(padding(maxReviewBytes - overhead + 1));
  like(t, larger, { status: 413, body: /larger than 7340032 bytes\n/ });
  t.equal((await post(Buffer.alloc(16_000_000, ' '))).status, 413, '16 MB');
  const headers = { 'transfer-encoding': 'chunked' };
  const { status } = await post(Buffer.alloc(16_000_000, ' '), { headers });
  t.equal(status, 413, '16 MB without Content-Length');
  t.equal(await metric('archwright_admission_bad_requests_total{reason="too-large"}'), 3);
  t.equal((await post(valid)).status, 200);
});

test('more values than a pod can have get 413 before they are parsed', async (t) => {
  const { post, metric } = await serve(t);
  t.equal((await post(withValues(maxValues))).status, 413);
  t.equal(await metric('archwright_admission_bad_requests_total{reason="too-large"}'), 1);
  t.equal((await post(withValues(maxValues - 100))).status, 200);
  const text = valid.replace('"dryRun"', `"x":"${'{,[\\\\\\"'.repeat(200_000)}","dryRun"`);
  t.equal((await post(text)).status, 200, 'commas in texts do not count');
});

test('while clients hold large bodies, a large review gets 503, and a small one succeeds', async (t) => {
  const { webhook, post, metric } = await serve(t);
  for (let count = 0; count < 6; count += 1) {
    const socket = connect({ port: webhook.port, host: '127.0.0.1', ca: ca.cert });
    t.teardown(() => socket.destroy());
    // The last byte is missing.
    socket.write(unfinished(maxReviewBytes) + ' '.repeat(maxReviewBytes - 2));
  }
  const large = withValues(maxValues - 100);
  await until(async () => (await post(large)).status === 503, 'the memory of its values is missing');
  t.equal((await post(valid)).status, 200);
  t.ok((await metric('archwright_admission_bad_requests_total{reason="overloaded"}')) > 0);
});

test('keys count towards the memory of a review', async (t) => {
  const bytesOf = (text: string): number => parsedBytes(Buffer.from(text), false);
  const padding = `"${'x'.repeat(64 * 1024)}"`;
  t.equal(bytesOf(`[${padding},1,2]`), 4 * 64);
  t.equal(bytesOf(`[${padding},{"a":1,"b":2}]`), 4 * 64 + 64 + 2 * 96);
  t.equal(bytesOf(`["a:b:c",${padding}]`), 3 * 64);
  const nested = Buffer.from('['.repeat(100) + ']'.repeat(100));
  t.equal(
    parsedBytes(nested, true),
    100 * 64,
    'while there is room, as if it had a value in every two bytes',
  );
  t.equal(parsedBytes(Buffer.from(`[${padding}]`), true), 2 * 64, 'large bodies are always counted');
});

test('an incomplete body gets 408, and the connection ends', async (t) => {
  const { webhook, metric } = await serve(t, { bodyTimeoutMs: 50 });
  const socket = connect({ port: webhook.port, host: '127.0.0.1', ca: ca.cert });
  t.teardown(() => socket.destroy());
  let text = '';
  let ended = false;
  socket.on('data', (chunk: Buffer) => (text += chunk.toString())).on('error', () => undefined);
  socket.on('close', () => (ended = true));
  socket.write(unfinished(1000));
  await until(() => text.includes('not complete after 50 ms'), 'an answer');
  t.match(text, /^HTTP\/1.1 408 /);
  await until(() => ended, 'closed');
  t.equal(await metric('archwright_admission_bad_requests_total{reason="body"}'), 1);
});

test('a client that disconnects early does not affect others', async (t) => {
  const { webhook, post, metric, lines } = await serve(t);
  const socket = connect({ port: webhook.port, host: '127.0.0.1', ca: ca.cert });
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  socket.write(unfinished(1000), () => socket.destroy());
  socket.on('error', () => undefined);
  const noticed = (): Promise<number> => metric('archwright_admission_bad_requests_total{reason="body"}');
  await until(async () => (await noticed()) !== 0, 'the aborted request');
  t.equal((await post(valid)).status, 200);
  t.strictSame(
    lines.filter(({ level }) => level === 'error'),
    [],
  );
});

test('an invalid object is admitted unchanged, with its uid and a warning', async (t) => {
  const { admit, metric, lines } = await serve(t, { source: scripted({ 'app:1': ['arm64'] }) });
  const spec = pod.spec;
  const cases: [what: string, object: unknown, warning: RegExp][] = [
    ['none', undefined, /object is not an object/],
    ['null', null, /object is not an object/],
    ['no spec', { metadata: {} }, /object\.spec is not an object/],
    ['spec is a text', { spec: 'x' }, /object\.spec is not an object/],
    ['metadata is a text', { metadata: 'x', spec }, /object\.metadata is not an object/],
    ['no containers', { spec: {} }, /object\.spec\.containers is not a list/],
    ['containers is a number', { spec: { containers: 3 } }, /containers is not a list/],
    ['a container is null', { spec: { containers: [null] } }, /containers is not a list of objects/],
    ['an image is a number', { spec: { containers: [{ name: 'a', image: 7 }] } }, /image is not a string/],
    [
      'init containers are a text',
      { spec: { ...spec, initContainers: 'x' } },
      /initContainers is not a list/,
    ],
    ['volumes are an object', { spec: { ...spec, volumes: {} } }, /volumes is not a list/],
    [
      'pull secrets are texts',
      { spec: { ...spec, imagePullSecrets: ['x'] } },
      /imagePullSecrets is not a list of objects/,
    ],
    ['affinity has null terms', { spec: { ...spec, ...requiring('x' as never) } }, /could not be understood/],
    ...wrongTypes.map(([path, value, field]): (typeof cases)[number] => [
      `${path} of a wrong type`,
      withValue(path, value),
      new RegExp(`object\\.(?:metadata|spec)\\S*${field}\\S* is not`),
    ]),
  ];
  for (const [what, object, warning] of cases) {
    const admitted = await admit({ object });
    like(t, admitted.raw, { uid, allowed: true }, what);
    t.strictSame(admitted.operations, [], what);
    like(t, admitted.warnings, [warning], what);
  }
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="fault"}'), cases.length);
  t.equal(lines.filter(({ level }) => level === 'error').length, cases.length);
});

/** Found by fuzzing: types that the API server would refuse, but only after the webhook. */
const term = 'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
const wrongTypes: readonly [path: string, value: unknown, field: string][] = [
  ['metadata.labels', { a: 1 }, 'labels'],
  ['metadata.annotations', { 'arch.example/decision': {} }, 'annotations'],
  ['spec.nodeSelector', [], 'nodeSelector'],
  ['spec.tolerations', [{ key: 1 }], 'tolerations'],
  ['spec.schedulingGates', [{ name: {} }], 'schedulingGates'],
  ['spec.os', { name: [] }, 'os'],
  ['spec.volumes', [{ name: 'v', image: { reference: 300 } }], 'image'],
  ['spec.containers', [{ name: {}, image: 'app:1' }], 'containers'],
  ['spec.affinity.nodeAffinity', 'x', 'nodeAffinity'],
  [`spec.${term}`, [{ matchExpressions: 'x' }], 'matchExpressions'],
  [`spec.${term}`, [{ matchExpressions: [{ key: 'kubernetes.io/arch', values: [1] }] }], 'values'],
  [
    'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution',
    [{ weight: 1, preference: [] }],
    'preference',
  ],
];

/** A valid pod with another value at a path. */
function withValue(path: string, value: unknown): unknown {
  const object: Record<string, unknown> = structuredClone({ ...pod });
  const steps = path.split('.');
  const last = steps.pop() ?? '';
  let at = object;
  for (const step of steps) at = (at[step] ??= {}) as typeof at;
  at[last] = value;
  return object;
}

test('deeply nested objects are admitted', async (t) => {
  const { post } = await serve(t, { source: scripted({ 'app:1': ['arm64'] }) });
  const depth = 100_000;
  const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  for (const field of ['metadata', 'labels', 'affinity', 'nodeAffinity', 'tolerations', 'x']) {
    const object = JSON.stringify({
      metadata: { labels: { labels: 1 }, metadata: 1 },
      spec: {
        containers: [{ name: 'a', image: 'app:1' }],
        affinity: { nodeAffinity: { nodeAffinity: 1 } },
        tolerations: 1,
        x: 1,
      },
    }).replace(`"${field}":1`, `"${field}":${deep}`);
    const admitted = admittedOf(await post(review({ object: 'HERE' }).replace('"HERE"', object)));
    like(t, admitted, { uid, allowed: true }, field);
  }
});

test('keys such as `__proto__` have no special meaning', async (t) => {
  const { post } = await serve(t, { source: scripted({ 'app:1': ['arm64'] }) });
  const object = JSON.stringify(pod).replace(
    '"spec":{',
    '"__proto__":{"polluted":1},"spec":{"__proto__":{"nodeName":"n"},"constructor":1,',
  );
  const admitted = admittedOf(await post(review({ object: 'HERE' }).replace('"HERE"', object)));
  t.strictSame(admitted.required, ['arm64']);
  t.equal(Reflect.get({}, 'polluted'), undefined);
  like(t, admittedOf(await post(review({ kind: { group: '__proto__', kind: 'constructor' } }))), {
    allowed: true,
  });
});

test('ten thousand images take no longer than the budget, with a bounded number of lookups', async (t) => {
  const source = scripted({});
  const { admitPod } = await serve(t, { source, inlineBudgetMs: () => 300 });
  const images = Array.from({ length: 10_000 }, (_, index) => `registry.example/team/app-${index}:1`);
  const [admitted, ms] = await withUserMs(() => admitPod(images));
  t.ok(admitted.gated);
  t.ok(ms < 5000, `${Math.round(ms)} ms`);
  t.equal(source.lookups.length, 256);
  t.ok(JSON.stringify(admitted.raw).length < 100_000, 'a bounded response');
});

test('of hundreds of images, the first 256 are looked at; any further ones are unknown', async (t) => {
  const { admitPod, cache } = await serve(t, { source: scripted({}) });
  cache.learn(freshFacts('docker.io/library/app:1', ['arm64']));
  const invalid = Array.from({ length: 256 }, (_, index) => `NOT-AN-IMAGE-${index}`);
  t.strictSame((await admitPod([...invalid.slice(1), 'app:1'])).required, ['arm64']);
  const further = await admitPod([...invalid, 'app:1']);
  t.equal(further.required, undefined);
  t.ok(further.gated);
});
