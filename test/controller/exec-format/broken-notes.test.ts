/** Writing the notes: two containers of one image, in two namespaces, that fail at the same time. */
import t, { type Test } from 'tap';
import { BrokenNotes } from '../../../src/controller/exec-format/broken-notes.ts';
import {
  formatBroken,
  keyOfBroken,
  parseBroken,
  type BrokenImage,
} from '../../../src/images/sources/broken-images.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { connectedStore } from '../../kube/support.ts';

const signal = AbortSignal.timeout(60_000);
const path = '/api/v1/namespaces/archwright/configmaps/notes';
const until = Date.parse('2027-01-01T00:00:00Z');
const seen = { digest: `sha256:${'a'.repeat(64)}`, architecture: 'arm64', image: 'shop/web:1', until };

async function start(t: Test): Promise<{ store: KubeStore; notes: BrokenNotes }> {
  const { store, client } = await connectedStore(t);
  return { store, notes: new BrokenNotes({ client, namespace: 'archwright', name: 'notes' }) };
}

for (const [title, data] of [
  ['a ConfigMap that is there', {}],
  ['none yet', undefined],
] as const) {
  void t.test(`no namespace is lost where several are noted at once: ${title}`, async (t) => {
    const { store, notes } = await start(t);
    if (data) store.put(path, { data });
    const namespaces = ['bank', 'mail', 'shop'];
    const news = await Promise.all(namespaces.map((namespace) => notes.add({ ...seen, namespace }, signal)));
    t.same(news, ['new', 'new', 'new']);
    const kept = parseBroken((store.get(path) as { readonly data?: Record<string, string> }).data);
    t.same(
      kept.map((note) => note.namespaces),
      [namespaces],
    );
  });
}

const long = (letter: string, index: number): string => `${letter.repeat(60)}${index}`;
const manyNamespaces = Array.from({ length: 20 }, (_, index) => long('n', index));

/** The longest notes that we write. @param namespaces of the note with this index */
function dataOf(
  count: number,
  namespaces: readonly string[] | ((index: number) => readonly string[]),
): Record<string, string> {
  const notes = Array.from({ length: count }, (_, index): BrokenImage => {
    const digest = `sha256:${index.toString(16).padStart(64, '0')}`;
    const all = typeof namespaces === 'function' ? namespaces(index) : namespaces;
    return { digest, architecture: 'arm64', image: 'i'.repeat(256), namespaces: all, until: until + index };
  });
  return Object.fromEntries(
    notes.map((note) => [keyOfBroken(note.digest, note.architecture), formatBroken(note)]),
  ) as Record<string, string>;
}

const [first] = Object.entries(dataOf(1, [long('n', 0)]));
for (const { title, data, namespace, digest = seen.digest, noted } of [
  {
    title: 'as many notes as there may be, and no namespace has two',
    data: dataOf(1000, (index) => [`n-${index}`]),
    namespace: 'shop',
    noted: 'full',
  },
  { title: 'one less', data: dataOf(999, (index) => [`n-${index}`]), namespace: 'shop', noted: 'new' },
  {
    title: 'as many notes as there may be, and others have more of them',
    data: dataOf(1000, (index) => [`n-${index % 20}`]),
    namespace: 'shop',
    noted: 'new',
  },
  { title: 'less, but as many bytes', data: dataOf(600, manyNamespaces), namespace: 'shop', noted: 'new' },
  { title: 'less bytes', data: dataOf(500, manyNamespaces), namespace: 'shop', noted: 'new' },
  {
    title: 'as many bytes, one more namespace',
    data: { ...dataOf(600, manyNamespaces), ...Object.fromEntries(first ? [first] : []) },
    namespace: 'shop',
    digest: `sha256:${'0'.repeat(64)}`,
    noted: 'new',
  },
  {
    title: 'as many namespaces in one note as there may be',
    data: dataOf(1, manyNamespaces),
    namespace: 'shop',
    digest: `sha256:${'0'.repeat(64)}`,
    noted: 'full',
  },
  {
    title: 'as many bytes, what is known is kept fresh',
    data: dataOf(600, manyNamespaces),
    namespace: long('n', 3),
    digest: `sha256:${'0'.repeat(64)}`,
    noted: 'known',
  },
  {
    title: 'a digest that makes no key',
    data: {},
    namespace: 'shop',
    digest: 'sha512:x',
    noted: 'full',
  },
] as const) {
  void t.test(`what an object holds: ${title}`, async (t) => {
    const { store, notes } = await start(t);
    store.put(path, { data });
    const later = until + 2 * 3_600_000;
    t.equal(await notes.add({ ...seen, digest, namespace, until: later }, signal), noted);
    t.equal(store.writes().length, noted === 'full' ? 0 : 1);
    const kept = (store.get(path) as { readonly data?: Record<string, string> }).data;
    t.ok(Buffer.byteLength(JSON.stringify(kept)) < 1024 * 1024, 'the API server takes it');
  });
}

t.test('one namespace keeps its newest notes, and takes no room from others', async (t) => {
  const { store, notes } = await start(t);
  store.put(path, { data: dataOf(40, ['shop']) });
  for (let index = 0; index < 60; index += 1) {
    const digest = `sha256:${'b'.repeat(60)}${String(index).padStart(4, '0')}`;
    t.equal(await notes.add({ ...seen, digest, namespace: 'attacker', until: until + index }, signal), 'new');
  }
  const kept = parseBroken((store.get(path) as { readonly data?: Record<string, string> }).data);
  const of = (namespace: string) => kept.filter(({ namespaces }) => namespaces.includes(namespace));
  t.equal(of('shop').length, 40);
  t.equal(of('attacker').length, 50);
  t.equal(Math.min(...of('attacker').map((note) => note.until)), until + 10, 'the oldest have left');
});

t.test('levels take their part of the room of a namespace', async (t) => {
  const { store, notes } = await start(t);
  for (let index = 0; index < 30; index += 1) {
    const digest = `sha256:${'b'.repeat(60)}${String(index).padStart(4, '0')}`;
    const given = { ...seen, digest, architecture: 'amd64', namespace: 'shop', until: until + index };
    for (const level of [2, 3, 4] as const) t.equal(await notes.add({ ...given, level }, signal), 'new');
  }
  const kept = parseBroken((store.get(path) as { readonly data?: Record<string, string> }).data);
  t.equal(kept.length, 50);
  t.equal((await notes.prune(until + 20, signal)).length, 27, 'levels expire');
});

t.test('notes of twenty namespaces that fill everything make room for another namespace', async (t) => {
  const { store, notes } = await start(t);
  store.put(path, { data: dataOf(1000, (index) => [`attacker-${index % 20}`]) });
  for (let index = 0; index < 10; index += 1) {
    const digest = `sha256:${'b'.repeat(60)}${String(index).padStart(4, '0')}`;
    t.equal(await notes.add({ ...seen, digest, namespace: 'shop' }, signal), 'new');
  }
  const kept = parseBroken((store.get(path) as { readonly data?: Record<string, string> }).data);
  t.equal(kept.length, 1000);
  t.equal(kept.filter(({ namespaces }) => namespaces.includes('shop')).length, 10);
});
