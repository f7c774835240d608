/** The gauges of Docker Hub's limit, and registries that abuse them. */
import t, { type Test } from 'tap';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { noTimers } from '../../support/fake-clock.ts';
import { clientFor, endpointOf, lookUp, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';

type Limits = Readonly<Record<string, string | readonly string[]>>;

async function setUp(t: Test) {
  const registry = await startRegistry(t);
  const content = multiArch(['linux/amd64']);
  registry.push('library/app', 'v1', content);
  const metrics = createMetrics();
  const clock = { time: 0, now: () => clock.time, ...noTimers, monotonic: () => clock.time };
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
  const { registry, client, clock, shown, answer } = await setUp(t);
  await lookUp(client, endpointOf(registry, { namespace: 'docker.io' }));
  t.strictSame(await shown(), series(0, 0), 'a registry that says nothing');
  await answer({ 'ratelimit-limit': '100;w=21600', 'ratelimit-remaining': '76;w=21600' });
  t.strictSame(await shown(), series(100, 76));
  t.strictSame(client.dockerHubLimit(), { limit: 100, remaining: 76 });
  clock.time = 21_600_000 - 1;
  t.strictSame(await shown(), series(100, 76));
  clock.time = 21_600_000;
  t.strictSame(await shown(), series(0, 0));
  t.equal(client.dockerHubLimit(), undefined);
  const headers = { 'ratelimit-limit': '100', 'ratelimit-remaining': '0' };
  registry.faults.add(/manifests/, { kind: 'status', status: 429, headers });
  await t.rejects(lookUp(client, endpointOf(registry, { namespace: 'docker.io' })), { code: 'rate-limited' });
  t.strictSame(await shown(), series(100, 0), 'a refusal, without a window');
});

t.test('values that no registry sends are ignored, and those of other registries', async (t) => {
  const { shown, answer } = await setUp(t);
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
