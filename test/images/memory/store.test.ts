import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { sharedScope } from '../../../src/images/memory/scope.ts';
import { parseReference, pullReference } from '../../../src/images/references/reference.ts';
import { FactsStore } from '../../../src/images/memory/store.ts';
import { digestOf, facts } from '../support.ts';

function put(store: FactsStore, image: string, more: Partial<ImageFacts> = {}, scope = sharedScope): void {
  const digest = more.digest ?? digestOf(image);
  store.put(pullReference(parseReference(image)).text, scope, { ...facts(image, more), digest }, 0);
}

function find(store: FactsStore, image: string, scope = sharedScope): string | undefined {
  const reference = parseReference(image);
  return store.find(pullReference(reference).text, reference, scope)?.digest;
}

t.test('the store is bounded by bytes; the least recently used facts are removed', async (t) => {
  let evicted = 0;
  const store = new FactsStore(20_000, () => (evicted += 1));
  for (let index = 0; index < 500; index += 1) {
    put(store, `app-${index}`);
    const used = store.get('docker.io/library/app-0:latest', sharedScope);
    if (used) store.touch(used, index);
    t.ok(store.bytes <= 20_000);
  }
  t.ok(store.size > 20, `room for ${store.size}`);
  t.equal(store.size + evicted, 500);
  t.ok(find(store, 'app-0'), 'used each time');
  t.ok(find(store, 'app-499'));
  t.equal(find(store, 'app-1'), undefined);
  t.equal(find(store, `library/app-1@${digestOf('app-1')}`), undefined, 'not by its digest either');
});

t.test('equal details are counted once, distinct ones separately', async (t) => {
  const bytes = (change: (index: number) => Partial<ImageFacts>): number => {
    const store = new FactsStore(Infinity);
    for (let index = 0; index < 100; index += 1) put(store, `app-${index}`, change(index));
    return store.bytes;
  };
  const same = bytes(() => ({}));
  const distinct: ((index: number) => Partial<ImageFacts>)[] = [
    (index) => ({ endpoint: `registry-${index}` }),
    (index) => ({ mediaType: `application/type-${index}` }),
    (index) => ({ platforms: [{ os: 'linux', architecture: `arch${index}` }] }),
    (index) => ({ platforms: [{ os: `os${index}`, architecture: 'arm64' }] }),
    (index) => ({ platforms: [{ os: 'linux', architecture: 'arm', variant: `v${index}` }] }),
    (index) => ({ platforms: [{ os: 'windows', architecture: 'amd64', osVersion: `10.0.${index}` }] }),
    (index) => ({ platforms: [{ os: 'linux', architecture: 'amd64', written: `amd64/v${index}` }] }),
    (index) => ({ platforms: [], error: { code: 'not-an-image', message: `no image ${index}` } }),
  ];
  for (const change of distinct) t.ok(bytes(change) > same + 99 * 200, String(change));
  t.ok(
    bytes((index) => ({ credentialSource: index % 2 === 0 ? 'anonymous' : 'docker-config' })) < same + 2000,
  );
  const long = bytes((index) => ({ endpoint: 'é'.repeat(200) + index }));
  t.ok(long > same + 99 * 400, 'long texts count');
});

t.test('facts that differ in one platform have details of their own', async (t) => {
  const store = new FactsStore(Infinity);
  const plain = { os: 'linux', architecture: 'arm64' };
  const lists = [plain, { ...plain, unnamed: true as const }, { ...plain, needsFeatures: true as const }];
  for (const [index, platform] of lists.entries()) put(store, `app-${index}`, { platforms: [platform] });
  for (const [index, platform] of lists.entries()) {
    const entry = store.get(`docker.io/library/app-${index}:latest`, sharedScope);
    t.same(entry?.details.value.platforms, [platform]);
  }
});

t.test('replacing and removing frees every byte', async (t) => {
  const store = new FactsStore(Infinity);
  put(store, 'nginx');
  const once = store.bytes;
  for (let index = 0; index < 50; index += 1) {
    put(store, 'nginx', { endpoint: `registry-${index}`, digest: digestOf(String(index)) });
  }
  put(store, 'nginx');
  t.equal(store.bytes, once);
  t.equal(find(store, `nginx@${digestOf('7')}`), undefined);
  const entry = store.get('docker.io/library/nginx:latest', sharedScope);
  if (entry) store.remove(entry);
  t.same([store.size, store.bytes], [0, 0]);
});

t.test('an entry larger than the store is not kept', async (t) => {
  const store = new FactsStore(1000);
  put(store, 'nginx', { endpoint: 'e'.repeat(2000) });
  t.same([store.size, store.bytes], [0, 0]);
});

t.test('a digest is found by its tag, in the same repository and scope', async (t) => {
  const store = new FactsStore(Infinity);
  put(store, 'corp.example:5000/app:v1', { digest: digestOf('content') });
  const byDigest = (repository: string): string => `${repository}@${digestOf('content')}`;
  t.ok(find(store, byDigest('corp.example:5000/app')));
  t.equal(find(store, byDigest('corp.example:5000/ap')), undefined);
  t.equal(find(store, byDigest('corp.example/app')), undefined);
  t.equal(find(store, byDigest('corp.example:5000/app'), 'x'), undefined);
  put(store, 'secret.example/app:v1', { digest: digestOf('secret') }, 'x');
  t.equal(find(store, `secret.example/app@${digestOf('secret')}`), undefined);
  t.equal(find(store, 'secret.example/app:v1', 'x'), digestOf('secret'));
  put(store, byDigest('corp.example:5000/app'), { digest: digestOf('content') });
  const tagged = store.get('corp.example:5000/app:v1', sharedScope);
  if (tagged) store.remove(tagged);
  t.ok(find(store, byDigest('corp.example:5000/app')));
});

t.test('only facts of the shared scope are shared', async (t) => {
  const store = new FactsStore(Infinity);
  for (const image of ['a', 'b', 'c']) put(store, image);
  put(store, 'secret', {}, 'x');
  t.same(
    store.shared().map(({ key }) => key),
    ['c', 'b', 'a'].map((name) => `docker.io/library/${name}:latest`),
  );
});

t.test('stored texts do not keep the document they were cut from in memory', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const store = new FactsStore(Infinity);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < 50; index += 1) {
    const digest = digestOf(`${index}`);
    const document = `${'x'.repeat(1_000_000)}${digest}`;
    put(store, `app-${index}`, { digest: document.slice(-digest.length) });
    t.equal(find(store, `app-${index}`), digest);
  }
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  t.ok(bytes < 10_000_000, `50 documents of 1 MB, ${bytes} bytes kept`);
});
