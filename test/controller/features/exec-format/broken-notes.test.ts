/** The notes of broken images: concurrent writes, and their bounds. */
import t, { type Test } from 'tap';
import {
  noteBroken,
  pruneBroken,
  type BrokenObservation,
} from '../../../../src/controller/features/exec-format/broken-notes.ts';
import {
  formatBroken,
  keyOfBroken,
  parseBroken,
  type BrokenImage,
} from '../../../../src/images/sources/broken-images.ts';
import { connectedStore } from '../../../kube/support.ts';
import { dataAt } from '../../objects.ts';
import { neverAborted } from '../../../support/never-aborted.ts';

const path = '/api/v1/namespaces/archwright/configmaps/notes';
const until = Date.parse('2027-01-01T00:00:00Z');
const seen = { digest: `sha256:${'a'.repeat(64)}`, architecture: 'arm64', image: 'shop/web:1', until };

async function start(t: Test) {
  const { store, client } = await connectedStore(t);
  const leader = { client, namespace: 'archwright', signal: neverAborted };
  return {
    store,
    add: (each: BrokenObservation) => noteBroken(leader, 'notes', each),
    prune: (now: number) => pruneBroken(leader, 'notes', now),
  };
}

for (const [title, data] of [
  ['a ConfigMap that exists', {}],
  ['none yet', undefined],
] as const) {
  t.test(`concurrent notes of several namespaces are all kept: ${title}`, async (t) => {
    const { store, add } = await start(t);
    if (data) store.put(path, { data });
    const namespaces = ['bank', 'mail', 'shop'];
    const news = await Promise.all(namespaces.map((namespace) => add({ ...seen, namespace })));
    t.strictSame(news, [true, true, true]);
    const kept = parseBroken(dataAt(store, path));
    t.strictSame(
      kept.map((note) => note.namespaces.toSorted()),
      [namespaces],
    );
    const { length } = store.writes();
    t.equal(await add({ ...seen, namespace: 'shop', until: until + 1 }), false);
    t.equal(store.writes().length, length, 'a note that is as new is not written again');
  });
}

const long = (letter: string, index: number): string => `${letter.repeat(60)}${index}`;
const numbered = (index: number): string => `sha256:${'b'.repeat(60)}${String(index).padStart(4, '0')}`;
const manyNamespaces = Array.from({ length: 20 }, (_, index) => long('n', index));

/** Notes of the maximum length. @param namespaces those of the note with this index */
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

const oldest = { digest: `sha256:${'0'.repeat(64)}` };
const bounds: readonly {
  readonly title: string;
  readonly data: object;
  readonly isNew?: false;
  readonly of?: { readonly digest: string; readonly namespace?: string };
  readonly isDropped: boolean;
}[] = [
  { title: 'the maximum number of notes', data: dataOf(1000, (index) => [`n-${index}`]), isDropped: true },
  { title: 'one less', data: dataOf(999, (index) => [`n-${index}`]), isDropped: false },
  { title: 'the maximum number of bytes', data: dataOf(600, manyNamespaces), isDropped: true },
  { title: 'less bytes', data: dataOf(500, manyNamespaces), isDropped: false },
  {
    title: 'the maximum number of namespaces in one note',
    data: dataOf(1, manyNamespaces),
    of: oldest,
    isDropped: false,
  },
  {
    title: 'a known note that is renewed',
    data: dataOf(500, manyNamespaces),
    isNew: false,
    of: { ...oldest, namespace: long('n', 3) },
    isDropped: false,
  },
];
for (const { title, data, isNew = true, of, isDropped } of bounds) {
  t.test(`bounds of the ConfigMap, the oldest note goes: ${title}`, async (t) => {
    const { store, add } = await start(t);
    store.put(path, { data });
    const later = until + 2 * 3_600_000;
    t.equal(await add({ ...seen, namespace: 'shop', ...of, until: later }), isNew);
    const kept = dataAt(store, path);
    t.equal(!((keyOfBroken(oldest.digest, 'arm64') ?? '') in kept), isDropped);
    t.ok(Buffer.byteLength(JSON.stringify(kept)) < 1024 * 1024, 'below the size limit of the API server');
    const added = parseBroken(kept).find(({ until }) => until === later);
    t.ok(added?.namespaces.includes(of?.namespace ?? 'shop'));
    t.ok((added?.namespaces.length ?? 0) <= 20);
  });
}

t.test('a namespace beyond its limit keeps its newest notes, and displaces no others', async (t) => {
  const { store, add } = await start(t);
  store.put(path, { data: dataOf(40, ['shop']) });
  for (let index = 0; index < 60; index += 1) {
    const digest = numbered(index);
    t.equal(await add({ ...seen, digest, namespace: 'attacker', until: until + index }), true);
  }
  const kept = parseBroken(dataAt(store, path));
  const of = (namespace: string) => kept.filter(({ namespaces }) => namespaces.includes(namespace));
  t.equal(of('shop').length, 40);
  t.equal(of('attacker').length, 50);
  t.equal(Math.min(...of('attacker').map((note) => note.until)), until + 10, 'the oldest were dropped');
});

t.test("CPU levels count towards the namespace's limit", async (t) => {
  const { store, add, prune } = await start(t);
  for (let index = 0; index < 30; index += 1) {
    const digest = numbered(index);
    const given = { ...seen, digest, architecture: 'amd64', namespace: 'shop', until: until + index };
    for (const level of [2, 3, 4] as const) t.equal(await add({ ...given, level }), true);
  }
  const kept = parseBroken(dataAt(store, path));
  t.equal(kept.length, 50);
  t.equal((await prune(until + 20)).length, 27, 'levels expire');
});
