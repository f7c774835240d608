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

t.test('bounded by bytes: the least recently used leave', async (t) => {
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
  t.ok(find(store, 'app-0'), 'used all the time');
  t.ok(find(store, 'app-499'));
  t.equal(find(store, 'app-1'), undefined);
  t.equal(find(store, `library/app-1@${digestOf('app-1')}`), undefined, 'nor by its digest');
});

t.test('equal details are counted once, distinct ones each', async (t) => {
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

t.test('replacing and removing gives back every byte', async (t) => {
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

t.test('an entry that is larger than the store leaves at once', async (t) => {
  const store = new FactsStore(1000);
  put(store, 'nginx', { endpoint: 'e'.repeat(2000) });
  t.same([store.size, store.bytes], [0, 0]);
});

t.test('a digest is found under the tag that holds it, in the same repository and scope', async (t) => {
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

t.test('what may be told to anyone', async (t) => {
  const store = new FactsStore(Infinity);
  for (const image of ['a', 'b', 'c']) put(store, image);
  put(store, 'secret', {}, 'x');
  t.same(
    store.shared().map(({ key }) => key),
    ['c', 'b', 'a'].map((name) => `docker.io/library/${name}:latest`),
  );
});

t.test('kept texts do not keep what they were cut from alive', async (t) => {
  const store = new FactsStore(Infinity);
  const digest = digestOf('content');
  const body = `${'x'.repeat(1_000_000)}${digest}`;
  put(store, 'nginx', { digest: body.slice(-digest.length) });
  t.equal(find(store, 'nginx'), digest);
});
