/** Malformed, oversized and slow responses: each is a typed error and closes the socket. */
import t, { type Test } from 'tap';
import type { HttpClientLimits } from '../../src/http/client.ts';
import { clientFor, lookUp, startRegistry } from '../support/registry/client.ts';
import { document, image, index, mediaTypes, multiArch } from '../support/registry/content.ts';
import type { Fault } from '../support/registry/faults.ts';

async function setUp(t: Test, content = multiArch(['linux/amd64']), limits: Partial<HttpClientLimits> = {}) {
  const registry = await startRegistry(t);
  registry.push('library/app', 'v1', content);
  const client = clientFor(t, { limits });
  const platforms = async () => (await lookUp(client, registry)).platforms;
  return { registry, client, platforms };
}

const unsupported = 'unsupported-media-type';
const header = (name: string, value: string): Fault => ({ kind: 'headers', headers: { [name]: value } });
const unauthorized = (challenge?: string): Fault => ({
  kind: 'status',
  status: 401,
  headers: challenge === undefined ? {} : { 'www-authenticate': challenge },
});
const faults: readonly (readonly [name: string, fault: Fault, code: string, message: RegExp])[] = [
  ['garbage', { kind: 'garbage' }, 'unavailable', /not HTTP/],
  ['endless body', { kind: 'endless' }, 'too-large', /larger than 4194304 bytes/],
  ['closed at once', { kind: 'drop' }, 'unavailable', /closed/],
  ['closed after headers', { kind: 'close-after-headers' }, 'unavailable', /closed/],
  ['Content-Length above the body', { kind: 'short', missing: 100 }, 'unavailable', /closed/],
  ['Content-Length below the body', { kind: 'long', extra: 100 }, 'unavailable', /not HTTP/],
  ['compressed', { kind: 'gzip' }, unsupported, /compressed/],
  ['huge headers', { kind: 'huge-headers', bytes: 20_000 }, 'too-large', /header block/],
  ['another body', { kind: 'body', body: '{}' }, 'digest-mismatch', /verification failed/],
  [
    'another digest',
    header('docker-content-digest', `sha256:${'0'.repeat(64)}`),
    'digest-mismatch',
    /verification failed/,
  ],
  ['another type', header('content-type', 'text/html'), unsupported, /kind|type/],
  [
    'a contradictory type',
    header('content-type', mediaTypes.dockerManifest),
    unsupported,
    /differs from the one/,
  ],
  ['204', { kind: 'status', status: 204, body: '' }, 'unavailable', /204/],
  ['304', { kind: 'status', status: 304, body: '' }, 'unavailable', /304/],
  ['101', { kind: 'status', status: 101, body: '' }, 'unavailable', /101/],
  ['403', { kind: 'status', status: 403 }, 'forbidden', /403/],
  ['404', { kind: 'status', status: 404 }, 'not-found', /check the name and the tag/],
  ['406', { kind: 'status', status: 406 }, unsupported, /406/],
  ['408', { kind: 'status', status: 408 }, 'timeout', /408/],
  ['410', { kind: 'status', status: 410 }, 'not-found', /410/],
  ['418', { kind: 'status', status: 418 }, 'unavailable', /418/],
  ['429', { kind: 'status', status: 429 }, 'rate-limited', /a mirror/],
  ['500', { kind: 'status', status: 500 }, 'unavailable', /500/],
  ['a 401 without a challenge', unauthorized(), 'unauthorized', /give the pod a pull secret/],
  ['a 401 with a Digest challenge', unauthorized('Digest realm="x"'), 'unauthorized', /401/],
  ['a 401 without a realm', unauthorized('Bearer service="x"'), 'unavailable', /names no realm/],
];

for (const [name, fault, code, message] of faults) {
  t.test(`a response: ${name}`, async (t) => {
    const { registry, client } = await setUp(t);
    registry.faults.add(/manifests/, fault);
    await t.rejects(lookUp(client, registry), { name: 'RegistryError', code, message });
    t.strictSame(registry.counts(), { 'GET manifests': 1 });
    registry.faults.clear();
    const answer = await lookUp(client, registry);
    t.equal(answer.platforms.length, 1, 'the next lookup succeeds');
  });
}

t.test('a response that does not come, or stops, is a timeout', async (t) => {
  for (const [fault, limits, message] of [
    [{ kind: 'hold' }, { headerMs: 100 }, /waiting for a response took longer than 100 ms/],
    [{ kind: 'drip', everyMs: 60_000 }, { idleMs: 100 }, /silence .* 100 ms/],
  ] as const) {
    const { registry, client } = await setUp(t, undefined, limits);
    registry.faults.add(/manifests/, fault);
    await t.rejects(lookUp(client, registry), { code: 'timeout', message });
    t.equal(await registry.requests[0]?.ended, 'aborted');
  }
});

t.test('a long error page is not read completely', async (t) => {
  const { registry, client } = await setUp(t);
  const page = 'x'.repeat(10 * 1024 * 1024);
  registry.faults.add(/manifests/, { kind: 'status', status: 403, body: page });
  await t.rejects(lookUp(client, registry), { code: 'forbidden' });
  t.equal(await registry.requests[0]?.ended, 'aborted');
});

t.test('no error quotes the response of the server', async (t) => {
  const { registry, client } = await setUp(t);
  for (const status of [401, 403, 404, 500]) {
    const body = JSON.stringify({ errors: [{ message: 'root:x:0:0 internal' }] });
    const headers = { 'x-internal': 'root:x', 'www-authenticate': 'Basic realm="internal"' };
    registry.faults.add(/manifests/, { kind: 'status', status, body, headers });
    const error: unknown = await lookUp(client, registry).catch((e: unknown) => e);
    t.notMatch(JSON.stringify([String(error), error]), /internal|root:x/);
  }
});

t.test('an abort closes the socket on both sides', async (t) => {
  for (const fault of [
    { kind: 'hold' },
    { kind: 'drip', everyMs: 10 },
    { kind: 'drip-headers', everyMs: 10 },
  ] as const) {
    const { registry, client } = await setUp(t);
    registry.faults.add(/manifests/, fault);
    const controller = new AbortController();
    const lookup = lookUp(client, registry, {}, controller.signal);
    const request = await registry.waitFor(({ method }) => method === 'GET');
    controller.abort();
    await t.rejects(lookup, { code: 'timeout', where: registry.host }, fault.kind);
    t.equal(await request.ended, 'aborted', fault.kind);
  }
});

t.test('an aborted lookup sends nothing', async (t) => {
  const { registry, client } = await setUp(t);
  await t.rejects(lookUp(client, registry, {}, AbortSignal.abort()), { code: 'timeout' });
  t.strictSame(registry.requests, []);
});

const { ociIndex, ociManifest, ociConfig } = mediaTypes;
const configOf = (digest: string, size: number) => ({
  config: { mediaType: ociConfig, digest, size },
  layers: [],
});
const childOf = (_: unknown, number: number) => ({
  mediaType: ociManifest,
  digest: `sha256:${String(number).padStart(64, '0')}`,
  size: 2,
  platform: { os: 'linux', architecture: 'amd64' },
});
const documents: readonly (readonly [name: string, body: unknown, mediaType: string, code: string])[] = [
  ['no JSON', '<html>', ociIndex, unsupported],
  ['an empty index', '{"manifests":[]}', ociIndex, 'not-an-image'],
  ['an index that is a manifest', '{"manifests":[],"layers":[]}', ociIndex, unsupported],
  ['a config announced too large', configOf(`sha256:${'a'.repeat(64)}`, 2 ** 40), ociManifest, 'too-large'],
  ['too many children', { manifests: Array.from({ length: 1001 }, childOf) }, ociIndex, 'too-large'],
];

for (const [name, body, mediaType, code] of documents) {
  t.test(`a document: ${name}`, async (t) => {
    const { registry, client } = await setUp(t, document(mediaType, body));
    await t.rejects(lookUp(client, registry), { code });
    t.strictSame(registry.counts(), { 'GET manifests': 1 });
  });
}

t.test('a nested index that is listed twice is read once', async (t) => {
  const inner = index([{ content: image('linux/amd64'), platform: { os: 'linux', architecture: 'amd64' } }]);
  const twice = index([{ content: inner }, { content: inner }]);
  const { registry, platforms } = await setUp(t, twice);
  t.strictSame(await platforms(), [{ os: 'linux', architecture: 'amd64' }]);
  t.strictSame(registry.counts(), { 'GET manifests': 2 }, 'no second request for the same digest');
});

t.test('indexes nested deeper than three are refused', async (t) => {
  let content = index([{ content: image('linux/amd64'), platform: { os: 'linux', architecture: 'amd64' } }]);
  content = index([{ content }]);
  content = index([{ content }]);
  const { registry, platforms } = await setUp(t, content);
  t.equal((await platforms()).length, 1, 'three levels are read');
  registry.push('library/app', 'v1', index([{ content }]));
  await t.rejects(platforms(), { code: 'too-large', message: /nested deeper than 3/ });
});

t.test('a config with another size or digest than its descriptor is refused', async (t) => {
  const { registry, platforms } = await setUp(t, image('linux/amd64'));
  registry.faults.add(/blobs/, { kind: 'body', body: '{"architecture":"arm64"}' });
  await t.rejects(platforms(), { code: 'digest-mismatch', message: /size/ });
  registry.faults.clear();
  const size = image('linux/amd64').blobs[0]?.bytes.length ?? 0;
  const forged = '{"architecture":"arm64"}'.padEnd(size, ' ');
  registry.faults.add(/blobs/, { kind: 'body', body: forged });
  await t.rejects(platforms(), { code: 'digest-mismatch', message: /digest/ });
});

t.test('a config is limited to 1 MiB', async (t) => {
  const { registry, platforms } = await setUp(t, image('linux/amd64'));
  registry.faults.add(/blobs/, { kind: 'endless' });
  await t.rejects(platforms(), { code: 'too-large', message: /1048576/ });
});
