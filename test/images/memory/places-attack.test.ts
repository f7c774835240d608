/** Attack: pods of eight namespaces name images that their registry is slow to answer for, to keep others from the same registry. */
import t, { type Test } from 'tap';
import { FactsMemory, type FactsMemoryOptions } from '../../../src/images/memory/memory.ts';
import { createRegistrySource } from '../../../src/images/sources/registry-source.ts';
import type { ImageRequest } from '../../../src/images/facts/facts.ts';
import { clientFor, endpointOf, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import { day, question } from '../support.ts';
import { recordingLog } from '../../serving/support.ts';

const domain = 'corp.example';
const namespaces = Array.from({ length: 8 }, (_, index) => `attacker-${index}`);
const imagesPerNamespace = 20;

/** An agent's memory over one registry, which also stands for all others: it is their mirror. */
async function start(t: Test, options: Partial<FactsMemoryOptions> = {}) {
  const registry = await startRegistry(t);
  const source = createRegistrySource({
    registry: clientFor(t),
    endpoints: { endpoints: async () => [endpointOf(registry)], fingerprint: () => '' },
    credentials: { lookup: async () => [] },
    mayAskAnonymously: () => true,
  });
  const { log } = recordingLog();
  const memory = new FactsMemory({ source, log, concurrentLookups: 128, lookupsPerHost: 32, ...options });
  t.teardown(() => memory.close());
  const push = (name: string): void => registry.push(name, '1', multiArch(['linux/amd64', 'linux/arm64']));
  const requestOf = (namespace: string, image: string): ImageRequest => ({ ...question(image), namespace });
  return {
    registry,
    memory,
    push,
    requestOf,
    /** Sooner than the attacker's lookups end. */
    lookup: (namespace: string, image: string) =>
      memory.lookup(requestOf(namespace, image), { signal: AbortSignal.timeout(10_000) }),
  };
}

/** Images of every attacker: the registry holds the answers. */
const slowImages = (domainOf: (namespace: string) => string) =>
  namespaces.flatMap((namespace) =>
    Array.from({ length: imagesPerNamespace }, (_, index) => ({
      namespace,
      image: `${domainOf(namespace)}/slow/${namespace}-${index}:1`,
    })),
  );

for (const [name, domainOf] of [
  ['of the same registry', () => domain],
  ['of registries behind the same mirror', (namespace: string) => `${namespace}.example`],
] as const) {
  t.test(`slow images ${name}`, async (t) => {
    const { registry, push, lookup } = await start(t);
    registry.faults.add(/slow/, { kind: 'hold' });
    void Promise.allSettled(slowImages(domainOf).map(({ namespace, image }) => lookup(namespace, image)));
    await registry.waitFor(() => registry.requests.length >= 16);
    for (let index = 0; index < 10; index += 1) {
      push(`shop/app-${index}`);
      t.equal((await lookup('shop', `${domain}/shop/app-${index}:1`)).error, undefined);
    }
  });
}

t.test(
  'one registry gets a limited number of lookups, whatever redirects and mirrors they lead to',
  async (t) => {
    const { registry, lookup } = await start(t, { lookupsPerHost: 6 });
    registry.faults.add(/slow/, { kind: 'hold' });
    void Promise.allSettled(slowImages(() => domain).map(({ namespace, image }) => lookup(namespace, image)));
    await registry.waitFor(() => registry.requests.length === 6);
    for (let n = 0; n < 50; n += 1) await new Promise(setImmediate);
    t.equal(registry.requests.length, 6);
  },
);

t.test('revalidations that hang leave places for the revalidations and lookups of others', async (t) => {
  const { registry, memory, push, requestOf, lookup } = await start(t, {
    freshness: { ifNotPresentCacheTimeMs: day, revalidateIntervalMs: 0 },
  });
  const images = slowImages(() => domain);
  for (const { namespace, image } of images) {
    push(`slow/${image.slice(image.lastIndexOf('/') + 1, -2)}`);
    await lookup(namespace, image);
  }
  push('shop/app');
  await lookup('shop', `${domain}/shop/app:1`);
  registry.faults.add(/slow/, { kind: 'hold' });
  const before = registry.requests.length;
  for (const { namespace, image } of images) memory.recall(requestOf(namespace, image));
  memory.recall(requestOf('shop', `${domain}/shop/app:1`));
  await registry.waitFor(() => registry.requests.slice(before).some(({ path }) => path.includes('shop/app')));
  push('shop/new');
  t.equal((await lookup('shop', `${domain}/shop/new:1`)).error, undefined);
});
