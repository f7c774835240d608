/** Attack: a namespace uses thousands of images, to evict those of others from the cache. */
import t from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { maxPlatforms } from '../../../src/images/facts/wire.ts';
import { sized } from '../../support/exhaustive.ts';
import { factsOf, requestFor } from '../../support/facts.ts';
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
