/** Attack: images with many long platforms, to evict the facts of all others from memory. */
import t from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { maxPlatforms } from '../../../src/images/facts/wire.ts';
import { sharedScope } from '../../../src/images/memory/scope.ts';
import { FactsStore } from '../../../src/images/memory/store.ts';
import { sized } from '../../support/exhaustive.ts';
import { bench, digestOf, facts, minute, requestFor, type Bench } from '../support.ts';

const maxBytes = 2 * 1024 * 1024;

/** Pods of 256 images. */
const hostileImages = sized(1, 6) * 256;

/** Facts that take 60 KiB. */
function hostile(image: string): ImageFacts {
  const long = (number: number) => `a${number}`.padEnd(63, 'x');
  const platforms = Array.from({ length: maxPlatforms }, (_, n) => ({
    os: long(n),
    architecture: long(n),
    variant: long(n),
    osVersion: long(n),
    written: `${long(n)}/${long(n)}`,
  }));
  return facts(image, { platforms, mediaType: image, endpoint: 'evil.example' });
}

const honest = Array.from({ length: 500 }, (_, n) => `docker.io/library/app-${n}:v1`);

const known = ({ memory }: Bench, images: readonly string[]): number =>
  images.filter((image) => memory.recall(requestFor(image))).length;

/** A memory with images that were used twice, and so are protected. */
async function inUse(): Promise<Bench> {
  const made = bench({ maxBytes });
  for (const image of honest) made.memory.learn(facts(image));
  await made.time.advance(2 * minute);
  t.equal(known(made, honest), honest.length);
  return made;
}

t.test('hostile images that are used once evict no facts in use', async (t) => {
  const made = await inUse();
  for (let n = 0; n < hostileImages; n += 1) {
    const image = `evil.example/app-${n}:v1`;
    made.memory.learn(hostile(image));
    made.memory.recall(requestFor(image));
  }
  t.ok(made.memory.bytes <= maxBytes);
  t.ok(made.memory.size < honest.length + hostileImages, 'memory was full');
  t.equal(known(made, honest), honest.length);
});

t.test('hostile images, each of its own registry, evict no facts in use', async (t) => {
  const made = await inUse();
  for (let n = 0; n < hostileImages; n += 1) made.memory.learn(hostile(`evil-${n}.example/app:v1`));
  t.equal(known(made, honest), honest.length);
});

t.test('hostile images that are used repeatedly evict no facts in use', async (t) => {
  const made = await inUse();
  for (let round = 0; round < 3; round += 1) {
    for (let n = 0; n < hostileImages; n += 1) {
      const image = `evil.example/app-${n}:v1`;
      if (!made.memory.recall(requestFor(image))) made.memory.learn(hostile(image));
    }
    await made.time.advance(2 * minute);
    t.equal(known(made, honest), honest.length, `round ${round}`);
  }
});

t.test('new images of other registries are kept during the attack', async (t) => {
  const made = await inUse();
  for (let n = 0; n < hostileImages; n += 1) made.memory.learn(hostile(`evil.example/app-${n}:v1`));
  const fresh = Array.from({ length: 100 }, (_, n) => `quay.io/team/new-${n}:v1`);
  for (const image of fresh) made.memory.learn(facts(image));
  for (let n = 0; n < 10; n += 1) made.memory.learn(hostile(`evil.example/again-${n}:v1`));
  t.equal(known(made, fresh), fresh.length);
});

t.test('one registry may fill the memory; its own oldest facts are evicted first', async (t) => {
  const store = new FactsStore(200_000);
  const put = (image: string) =>
    store.put(image, sharedScope, { ...facts(image), digest: digestOf(image) }, 0);
  for (let n = 0; n < 2000; n += 1) put(`docker.io/library/app-${n}:v1`);
  t.ok(store.bytes <= 200_000 && store.bytes > 190_000, `${store.bytes} bytes`);
  t.ok(store.get('docker.io/library/app-1999:v1', sharedScope));
  t.notOk(store.get('docker.io/library/app-0:v1', sharedScope));
  put('quay.io/team/app:v1');
  for (let n = 0; n < 2000; n += 1) put(`docker.io/library/new-${n}:v1`);
  t.ok(store.get('quay.io/team/app:v1', sharedScope));
});

t.test('protected facts that are no longer used are evicted eventually', async (t) => {
  const store = new FactsStore(100_000);
  const put = (image: string, now: number) => {
    store.put(image, sharedScope, { ...facts(image), digest: digestOf(image) }, now);
    const entry = store.get(image, sharedScope);
    if (entry) store.touch(entry, now + minute);
  };
  put('old.example/app:v1', 0);
  for (let n = 0; n < 500; n += 1) put(`registry-${n % 7}.example/app-${n}:v1`, n);
  t.notOk(store.get('old.example/app:v1', sharedScope));
  t.ok(store.get('registry-2.example/app-499:v1', sharedScope));
});
