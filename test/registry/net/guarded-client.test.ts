import t, { type Test } from 'tap';
import { TransportError, type TransportFailure } from '../../../src/http/transport-error.ts';
import { CircuitBreaker } from '../../../src/registry/net/circuit-breaker.ts';
import { shownUrl } from '../../../src/registry/net/guarded-client.ts';
import {
  clientFor,
  credential,
  endpointOf,
  lookUp,
  startRegistry,
  tracing,
} from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import type { Fault } from '../../support/registry/faults.ts';
import type { TestRegistryOptions } from '../../support/registry/server.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';

/** A refusal with Retry-After. */
const after = (status: number, value: string): Fault => ({
  kind: 'status',
  status,
  headers: { 'retry-after': value },
});

async function setUp(t: Test, registryOptions: TestRegistryOptions = {}) {
  const registry = await startRegistry(t, registryOptions);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const clock = createFakeClock();
  const client = clientFor(t, { clock });
  return { registry, client, clock };
}

t.test('only failures of a host open its circuit; without a pause there is no trial', async (t) => {
  const route = { where: 'h', prefix: 'p', registry: 'h', account: 'h as a', isToken: false };
  const cases: [TransportFailure, boolean][] = [
    ['closed', true],
    ['garbage', true],
    ['tls', true],
    ['resolve', true],
    ['header-timeout', true],
    ['aborted', false],
    ['refused-address', false],
    ['too-large', false],
    ['encoded', false],
    ['invalid', false],
    ['not-tls', false],
  ];
  for (const [failure, opens] of cases) {
    const breaker = new CircuitBreaker({ monotonic: () => 0 });
    const admit = () => breaker.admit(route);
    for (let n = 0; n < 5; n += 1) {
      for (const _ of [1, 2]) t.doesNotThrow(admit, failure);
      breaker.failed(route, new TransportError(failure, 'h', 'it failed'));
    }
    if (opens) t.throws(admit, { message: 'requests to h/p are paused for 5 s: it failed' }, failure);
    else t.doesNotThrow(admit, failure);
  }
});

t.test('a mirror that fails for one registry still serves the others', async (t) => {
  const { registry, client } = await setUp(t);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']), 'docker.io');
  const mirrorOf = (namespace: string) => endpointOf(registry, { namespace, namespaceParameter: true });
  const [gone, docker] = [mirrorOf('gone.example'), mirrorOf('docker.io')];
  registry.faults.add(/ns=gone.example/, after(503, '60'));
  await t.rejects(lookUp(client, gone), { message: /503/ });
  await t.rejects(lookUp(client, gone), { message: /\/library are paused for 60 s/ });
  t.equal((await lookUp(client, docker)).platforms.length, 1, 'Retry-After applies to one namespace');
  registry.faults.add(/ns=other.example/, { kind: 'drop' });
  const other = mirrorOf('other.example');
  for (let n = 0; n < 5; n += 1) await t.rejects(lookUp(client, other), { message: /closed/ });
  await t.rejects(lookUp(client, other), { message: /are paused for/ });
  t.equal((await lookUp(client, docker)).platforms.length, 1, 'closed connections apply to one namespace');
});

t.test(
  'each pause is longer than the one before, up to a minute; one request at a time is the trial',
  async (t) => {
    const { registry, client, clock } = await setUp(t);
    const fail = { kind: 'status', status: 500 } as const;
    const remove = registry.faults.add(/manifests/, fail);
    for (let n = 0; n < 5; n += 1) await t.rejects(lookUp(client, registry), { message: /500/ });
    const { trace, lines } = tracing();
    await t.rejects(lookUp(client, registry, { trace }), {
      code: 'unavailable',
      where: registry.host,
      message: /\/library are paused for 5 s: it answered 500$/,
    });
    t.strictSame(lines, [], 'nothing was sent');
    for (const retryAfterMs of [5000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      await t.rejects(lookUp(client, registry), { message: /are paused for/, retryAfterMs });
      await clock.advance(retryAfterMs);
      registry.clearRequests();
      const tries = await Promise.allSettled([lookUp(client, registry), lookUp(client, registry)]);
      t.equal(registry.requests.length, 1);
      like(t, tries[1], { status: 'rejected', reason: { retryAfterMs: 1000 } });
    }
    await clock.advance(60_000);
    remove();
    await lookUp(client, registry);
    registry.faults.add(/manifests/, fail);
    for (let n = 0; n < 5; n += 1)
      await t.rejects(lookUp(client, registry), { message: /500/ }, 'a success closes the circuit');
  },
);

t.test(
  'an aborted trial leaves the place to the next one; a response to an older request ends no pause',
  async (t) => {
    const { registry, client, clock } = await setUp(t);
    registry.push('library/older', 'v1', multiArch(['linux/amd64']));
    const { promise: event, resolve: release } = Promise.withResolvers<void>();
    registry.faults.add(/older/, { kind: 'after', event });
    const older = lookUp(client, registry, { repository: 'library/older' });
    await registry.waitFor(() => true);
    registry.faults.add(/app/, { kind: 'status', status: 500 }, { times: 5 });
    for (let n = 0; n < 5; n += 1) await t.rejects(lookUp(client, registry), { message: /500/ });
    release();
    t.equal((await older).platforms.length, 1);
    await t.rejects(lookUp(client, registry), { message: /are paused for/, retryAfterMs: 5000 });
    await clock.advance(5000);
    const controller = new AbortController();
    registry.faults.add(/app/, { kind: 'hold' }, { times: 1 });
    registry.clearRequests();
    const trial = lookUp(client, registry, {}, controller.signal);
    await registry.waitFor(() => true);
    controller.abort();
    await t.rejects(trial, { code: 'timeout' });
    t.equal((await lookUp(client, registry)).platforms.length, 1);
  },
);

t.test('after a 429 with Retry-After no request is sent until then', async (t) => {
  const { registry, client, clock } = await setUp(t);
  registry.faults.add(/manifests/, after(429, '120'), { times: 1 });
  const limited = { code: 'rate-limited', retryAfterMs: 120_000 };
  await t.rejects(lookUp(client, registry), limited);
  await t.rejects(lookUp(client, registry), limited);
  await clock.advance(119_999);
  await t.rejects(lookUp(client, registry), { ...limited, retryAfterMs: 1 });
  t.equal(registry.requests.length, 1);
  await clock.advance(1);
  t.equal((await lookUp(client, registry)).platforms.length, 1);
});

t.test('a 429 for one credential does not apply to another', async (t) => {
  const users = { ann: 'password-a', bea: 'password-b' };
  const { registry, client } = await setUp(t, { auth: { kind: 'basic', users } });
  const [ann, bea] = [credential('ann', 'password-a'), credential('bea', 'password-b')];
  const ask = (credentials: (typeof ann)[]) => lookUp(client, registry, { credentials });
  await ask([ann]);
  registry.faults.add(/manifests/, after(429, '60'), { times: 1 });
  t.equal((await ask([ann, bea])).credential, bea);
  registry.clearRequests();
  t.equal((await ask([ann, bea])).credential, bea);
  t.equal(registry.requests.length, 1, 'the limited credential is not tried before Retry-After');
  await t.rejects(ask([ann]), { code: 'rate-limited' });
});

t.test('shown URLs have no credentials and signatures', async (t) => {
  const shown = (url: string) => shownUrl(new URL(url));
  const signed = shown('https://ann:secret@host:5000/a?ns=docker.io&X-Amz-Signature=secret#x');
  t.equal(signed, 'https://host:5000/a?ns=docker.io');
  t.equal(
    shown('https://auth/token?service=s&scope=repository%3Aa%3Apull&account=ann'),
    'https://auth/token?service=s&scope=repository%3Aa%3Apull',
  );
  t.equal(shown('https://host/a?signature=secret'), 'https://host/a');
});

type Limits = Readonly<Record<string, string | readonly string[]>>;

async function setUpLimits(t: Test) {
  const registry = await startRegistry(t);
  const content = multiArch(['linux/amd64']);
  registry.push('library/app', 'v1', content);
  const metrics = createMetrics();
  const clock = createFakeClock();
  const client = clientFor(t, { clock, metrics });
  const shown = async (): Promise<readonly string[]> =>
    [...(await metrics.render()).matchAll(/^archwright_registry_limit_(\S+ .*)$/gm)].map(
      ([, series = '']) => series,
    );
  /** A lookup with these headers in the response. */
  const answer = async (headers: Limits, namespace = 'docker.io'): Promise<void> => {
    const body = content.bytes.toString();
    const all = { 'content-type': content.mediaType, ...headers };
    const remove = registry.faults.add(/manifests/, { kind: 'status', status: 200, headers: all, body });
    await lookUp(client, endpointOf(registry, { namespace }));
    remove();
  };
  return { registry, client, clock, shown, answer };
}

const series = (limit: number, remaining: number) => [
  `requests{registry="docker.io"} ${limit}`,
  `remaining_requests{registry="docker.io"} ${remaining}`,
];

t.test('the limits of Docker Hub, until its window ends', async (t) => {
  const { registry, client, clock, shown, answer } = await setUpLimits(t);
  await lookUp(client, endpointOf(registry, { namespace: 'docker.io' }));
  t.strictSame(await shown(), series(0, 0), 'a registry that says nothing');
  await answer({ 'ratelimit-limit': '100;w=21600', 'ratelimit-remaining': '76;w=21600' });
  t.strictSame(await shown(), series(100, 76));
  t.strictSame(client.dockerHubLimit(), { limit: 100, remaining: 76 });
  await clock.advance(21_600_000 - 1);
  t.strictSame(await shown(), series(100, 76));
  await clock.advance(1);
  t.strictSame(await shown(), series(0, 0));
  t.equal(client.dockerHubLimit(), undefined);
  const headers = { 'ratelimit-limit': '100', 'ratelimit-remaining': '0' };
  registry.faults.add(/manifests/, { kind: 'status', status: 429, headers });
  await t.rejects(lookUp(client, endpointOf(registry, { namespace: 'docker.io' })), { code: 'rate-limited' });
  t.strictSame(await shown(), series(100, 0), 'a refusal, without a window');
});

t.test('values that no registry sends are ignored, and those of other registries', async (t) => {
  const { shown, answer } = await setUpLimits(t);
  await answer({ 'ratelimit-limit': '100;w=21600', 'ratelimit-remaining': '76;w=21600' });
  for (const [limit, remaining] of [
    ['100', '-1'],
    ['-5', '-9'],
    ['100', '101'],
    ['9'.repeat(400), '1'],
    ['1e9', '1e3'],
    ['0x10', '1'],
    ['100;w=99999999999', '1'],
    ['100 ;w=1', '1'],
    ['100, 50', '1'],
    [['100', '100'], '1'],
    ['', ''],
  ] as const)
    await answer({ 'ratelimit-limit': limit, 'ratelimit-remaining': remaining });
  await answer({ 'ratelimit-remaining': '1' });
  await answer({ 'ratelimit-limit': '7', 'ratelimit-remaining': '0' }, 'other.example');
  t.strictSame(await shown(), series(100, 76));
  await answer({ 'ratelimit-limit': '100', 'ratelimit-remaining': '100' });
  t.strictSame(await shown(), series(100, 100), 'nothing is used yet');
});
