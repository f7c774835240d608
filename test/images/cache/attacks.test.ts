/**
 * Attack: a namespace uses thousands of images, to evict those of others from the cache, or pods of many namespaces
 * name slow images, to block the lookups of others.
 */
import t, { type Test } from 'tap';
import { FactsCache, type FactsCacheOptions } from '../../../src/images/cache/cache.ts';
import { createLookupPlaces } from '../../../src/images/cache/places.ts';
import { createRegistrySource } from '../../../src/images/sources/registry-source.ts';
import type { ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { maxPlatforms } from '../../../src/images/facts/wire.ts';
import { clientFor, endpointOf, startRegistry } from '../../support/registry/client.ts';
import { multiArch } from '../../support/registry/content.ts';
import { sized } from '../../support/exhaustive.ts';
import { factsOf, failureOf, requestFor } from '../../support/facts.ts';
import { recordingLog } from '../../support/captured.ts';
import { bench, type Bench } from '../support.ts';

const maxBytes = 2 * 1024 * 1024;
const hostileImages = sized(1, 6) * 256;

/** Facts that take 60 KiB, and have nothing in common with others. */
function hostile(image: string): ImageFacts {
  const long = (number: number) => `${image.length}a${number}-${image}`.padEnd(63, 'x').slice(0, 63);
  const platforms = Array.from({ length: maxPlatforms }, (_, n) => ({
    os: long(n),
    architecture: long(n),
    variant: long(n),
    osVersion: long(n),
    written: `${long(n)}/${long(n)}`,
  }));
  return factsOf(image, { platforms, mediaType: image, endpoint: 'evil.example' });
}

const honest = Array.from({ length: 500 }, (_, n) => `docker.io/library/app-${n}:v1`);

const known = ({ cache }: Bench, images: readonly string[]): number =>
  images.filter((image) => cache.peek(requestFor(image))).length;

/** A cache with images of another namespace. */
async function inUse(): Promise<Bench> {
  const made = bench({ maxBytes });
  for (const image of honest) await made.lookUp(requestFor(image, { namespace: 'honest' }), factsOf(image));
  return made;
}

t.test('hostile images, each of its own registry, evict no images of other namespaces', async (t) => {
  const made = await inUse();
  for (let round = 0; round < 2; round += 1) {
    for (let n = 0; n < hostileImages; n += 1) {
      const image = `evil-${n}.example/app:v1`;
      const request = requestFor(image, { namespace: 'hostile' });
      if (!made.cache.peek(request)) await made.lookUp(request, hostile(image));
    }
    t.equal(known(made, honest), honest.length, `round ${round}`);
  }
  t.ok(made.cache.bytes <= maxBytes);
  t.ok(made.cache.size < honest.length + hostileImages, 'the cache was full');
  const fresh = Array.from({ length: 100 }, (_, n) => `quay.io/team/new-${n}:v1`);
  for (const image of fresh) await made.lookUp(requestFor(image, { namespace: 'new' }), factsOf(image));
  t.equal(known(made, fresh), fresh.length, 'new images of others are kept');
});

t.test('images from before a restart belong to the namespaces that use them', async (t) => {
  const made = bench({ maxBytes });
  for (const image of honest) made.cache.learn(factsOf(image, { source: 'memory' }));
  for (const [n, image] of honest.entries())
    made.cache.peek(requestFor(image, { namespace: `honest-${n % 5}` }));
  for (let n = 0; n < 60; n += 1) {
    const image = `evil.example/app-${n}:v1`;
    await made.lookUp(requestFor(image, { namespace: `hostile-${n % 20}` }), hostile(image));
  }
  t.ok(made.cache.size < honest.length + 60, 'the cache was full');
  t.equal(known(made, honest), honest.length);
});

t.test('names of images that do not exist evict none either', async (t) => {
  const made = await inUse();
  for (let n = 0; n < 4000; n += 1) {
    const image = `evil.example/${'x'.repeat(200)}-${n}:v1`;
    const request = requestFor(image, { namespace: 'hostile' });
    void made.cache.get(request, { signal: AbortSignal.abort() }).catch(() => undefined);
    await made.lookUp(request, {
      ...factsOf(image),
      error: { code: 'not-found', message: 'gone' },
      platforms: [],
    });
  }
  t.ok(made.cache.bytes <= maxBytes);
  t.equal(known(made, honest), honest.length);
});

t.test('equal details of images take memory once, long ones for each image', async (t) => {
  const bytesOf = (label: string) => {
    const { cache } = bench({ maxBytes });
    const os = { os: 'linux', architecture: 'amd64', variant: label };
    cache.learn({ ...factsOf('docker.io/library/app:v1'), platforms: [os] });
    return cache.bytes;
  };
  t.equal(bytesOf('v2'), bytesOf('v22'));
  t.ok(bytesOf('x'.repeat(2000)) > bytesOf('v2') + 4000);
});

t.test('one namespace may fill the cache; what it used longest ago is evicted first', async (t) => {
  const made = bench({ maxBytes: 200_000 });
  const images = Array.from({ length: 2000 }, (_, n) => `docker.io/library/app-${n}:v1`);
  for (const image of images) {
    made.cache.learn(factsOf(image));
    made.cache.peek(requestFor('docker.io/library/app-0:v1'));
  }
  t.ok(made.cache.bytes <= 200_000 && made.cache.bytes > 190_000, `${made.cache.bytes} bytes`);
  t.ok(made.cache.peek(requestFor('docker.io/library/app-0:v1')), 'used all the time');
  t.ok(made.cache.peek(requestFor('docker.io/library/app-1999:v1')));
  t.notOk(made.cache.peek(requestFor('docker.io/library/app-1:v1')));
});

t.test('if all are used, a thousand are spared before one is evicted', async (t) => {
  const made = bench({ maxBytes: 800_000 });
  const request = (n: number) => requestFor(`docker.io/library/app-${n}:v1`);
  const requests = Array.from({ length: 1500 }, (_, n) => request(n));
  for (const each of requests) await made.lookUp(each, factsOf(each.image));
  for (const each of requests) made.cache.peek(each);
  for (let n = 1500; made.cache.size === n; n += 1) await made.lookUp(request(n), factsOf(request(n).image));
  t.equal(
    requests.find((each) => !made.cache.peek(each)),
    requests[1000],
  );
});

const domain = 'corp.example';
const namespaces = Array.from({ length: 8 }, (_, index) => `attacker-${index}`);
const imagesPerNamespace = 20;

/** The cache of an agent; one registry is the mirror of all. */
async function start(t: Test, options: Partial<FactsCacheOptions> = {}) {
  const registry = await startRegistry(t);
  const source = createRegistrySource({
    registry: clientFor(t),
    endpoints: { endpoints: async () => [endpointOf(registry)], fingerprint: () => '' },
    credentials: { lookup: async () => [] },
    mayAskAnonymously: () => true,
  });
  const { log } = recordingLog();
  const limits = { concurrentLookups: 128, lookupsPerHost: 32, lookupTimeoutMs: 60_000 };
  const cache = new FactsCache({ source, log, ...limits, ...options });
  t.teardown(() => cache.close());
  const push = (name: string): void => registry.push(name, '1', multiArch(['linux/amd64', 'linux/arm64']));
  const requestOf = (namespace: string, image: string): ImageRequest => requestFor(image, { namespace });
  return {
    registry,
    cache,
    push,
    requestOf,
    /** Times out before the attacker's lookups end. */
    lookup: (namespace: string, image: string) =>
      cache.get(requestOf(namespace, image), { signal: AbortSignal.timeout(40_000) }),
  };
}

/** Images of all attackers; the registry holds their answers. */
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
  t.test(`slow images ${name} do not delay other namespaces`, async (t) => {
    const { registry, push, lookup } = await start(t);
    registry.faults.add(/slow/, { kind: 'hold' });
    push('shop/first');
    await lookup('shop', `${domain}/shop/first:1`);
    void Promise.allSettled(slowImages(domainOf).map(({ namespace, image }) => lookup(namespace, image)));
    await registry.waitFor(() => registry.requests.length >= 1 + namespaces.length);
    for (let index = 0; index < 10; index += 1) {
      push(`shop/app-${index}`);
      t.equal((await lookup('shop', `${domain}/shop/app-${index}:1`)).error, undefined);
    }
  });
}

t.test('slow images of 200 namespaces and registries leave places for registries that work', async (t) => {
  const { registry, push, lookup } = await start(t);
  push('shop/first');
  await lookup('shop', `${domain}/shop/first:1`);
  const { promise: event, resolve: answer } = Promise.withResolvers<void>();
  registry.faults.add(/slow/, { kind: 'after', event });
  const slow = Array.from({ length: 800 }, (_, index) =>
    lookup(`attacker-${index % 200}`, `host-${index % 100}.example/slow/app-${index}:1`),
  );
  await registry.waitFor(() => registry.requests.length >= 1 + 32);
  for (let index = 0; index < 10; index += 1) {
    push(`shop/app-${index}`);
    t.equal((await lookup('shop', `${domain}/shop/app-${index}:1`)).error, undefined);
  }
  t.equal(
    registry.requests.filter(({ path }) => path.includes('slow')).length,
    32,
    'they share a few places',
  );

  const names = Array.from({ length: 12 }, (_, index) => `new-${index}`);
  for (const name of names) push(`team/${name}`);
  const waiting = names.map((name) => lookup('team', `new.example/team/${name}:1`));
  answer();
  for (const { error } of await Promise.all(waiting)) t.equal(error, undefined, 'a new registry is proven');
  await Promise.allSettled(slow);
});

t.test('lookups of new registries that could not get a place in time do not wait', async (t) => {
  const { registry, cache, lookup } = await start(t, { concurrentLookups: 2048, lookupsPerHost: 512 });
  registry.faults.add(/slow/, { kind: 'hold' });
  let refused = 0;
  const slow = Array.from({ length: 5000 }, async (_, index) => {
    const { error } = await lookup(`attacker-${index % 200}`, `host-${index % 100}.example/slow/${index}:1`);
    if (error?.code === 'rate-limited') refused += 1;
  });
  await registry.waitFor(() => registry.requests.length === 16);
  t.ok(refused > 5000 - 16 - 4096, `${refused} of 5000 are refused at once`);
  await cache.close();
  await Promise.allSettled(slow);
});

t.test('lookups per registry are limited', async (t) => {
  const { registry, push, lookup } = await start(t, { lookupsPerHost: 6 });
  push('shop/first');
  await lookup('shop', `${domain}/shop/first:1`);
  registry.clearRequests();
  registry.faults.add(/slow/, { kind: 'hold' });
  void Promise.allSettled(slowImages(() => domain).map(({ namespace, image }) => lookup(namespace, image)));
  await registry.waitFor(() => registry.requests.length === 6);
  for (let n = 0; n < 50; n += 1) await new Promise(setImmediate);
  t.equal(registry.requests.length, 6);
});

t.test('a host is proven until it keeps a caller waiting for an error', async (t) => {
  const request = requestFor('app:1');
  for (const [facts, tookMs, isProven] of [
    [factsOf('app:1'), 60_000, true],
    [factsOf('app:1', { stale: true }), 60_000, true],
    [failureOf('app:1', 'unavailable'), 999, true],
    [failureOf('app:1', 'unavailable'), 1000, false],
  ] as const) {
    const places = createLookupPlaces(128, 1);
    t.ok(places.tryEnter(requestFor('evil.example/app:1')), 'the only one for unproven hosts');
    places.answered(request, factsOf('app:1'));
    places.answered(request, facts, tookMs);
    t.equal(places.tryEnter(request) !== undefined, isProven, `${facts.error?.code} after ${tookMs} ms`);
  }
});

t.test('short names and docker.io have their own places', async (t) => {
  const places = createLookupPlaces(128, 2);
  const named = (namespace: string) => requestFor('app:1', { namespace });
  const short = (namespace: string) => ({ ...named(namespace), shortName: 'app' });
  places.answered(named('a'), factsOf('app:1'));
  places.answered(short('a'), factsOf('app:1'));
  const taken = ['a', 'b', 'c'].map((namespace) => places.tryEnter(short(namespace)) !== undefined);
  t.strictSame(taken, [true, true, false]);
  t.ok(places.tryEnter(named('a')), 'docker.io has places');
});

t.test('hanging refreshes do not block refreshes and lookups of other namespaces', async (t) => {
  const { registry, cache, push, requestOf, lookup } = await start(t, { refreshAfterMs: () => 0 });
  const images = slowImages(() => domain);
  for (const { namespace, image } of images) {
    push(`slow/${image.slice(image.lastIndexOf('/') + 1, -2)}`);
    await lookup(namespace, image);
  }
  push('shop/app');
  await lookup('shop', `${domain}/shop/app:1`);
  registry.faults.add(/slow/, { kind: 'hold' });
  const before = registry.requests.length;
  for (const { namespace, image } of images) cache.peek(requestOf(namespace, image));
  cache.peek(requestOf('shop', `${domain}/shop/app:1`));
  await registry.waitFor(() => registry.requests.slice(before).some(({ path }) => path.includes('shop/app')));
  push('shop/new');
  t.equal((await lookup('shop', `${domain}/shop/new:1`)).error, undefined);
});
