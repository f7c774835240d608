import t from 'tap';
import {
  avoiding,
  brokenImagesOf,
  formatBroken,
  keyOfBroken,
  maxBrokenImages,
  maxNamespaces,
  noBrokenImages,
  parseBroken,
} from '../../../src/images/sources/broken-images.ts';
import { facts } from '../../support/facts.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const note = { digest, architecture: 'arm64', image: 'shop/web:1', namespaces: ['shop'], until: 1_000_000 };

t.test('a record is read as it was written', async (t) => {
  const key = keyOfBroken(digest, 'arm64') ?? '';
  t.equal(key, `sha256-${'a'.repeat(64)}.arm64`);
  t.strictSame(parseBroken({ [key]: formatBroken(note) }), [note]);
});

t.test('invalid ConfigMap keys are not created', async (t) => {
  for (const [odd, architecture] of [
    ['sha512:abc', 'arm64'],
    [digest, 'ARM64'],
    [digest, 'a/b'],
    [digest, ''],
    [`${digest}0`, 'arm64'],
  ] as const) {
    t.equal(keyOfBroken(odd, architecture), undefined, `${odd} ${architecture}`);
  }
});

t.test('other entries of the ConfigMap are ignored, and records are bounded', async (t) => {
  const key = keyOfBroken(digest, 'arm64') ?? '';
  const good = JSON.parse(formatBroken(note)) as Record<string, unknown>;
  const cases: [name: string, data: Record<string, unknown>][] = [
    ['invalid JSON', { [key]: '{' }],
    ['not an object', { [key]: '7' }],
    ['null', { [key]: 'null' }],
    ['not a string', { [key]: 7 }],
    ['no image', { [key]: JSON.stringify({ ...good, image: 1 }) }],
    ['no namespaces', { [key]: JSON.stringify({ ...good, namespaces: 'shop' }) }],
    ['no time', { [key]: JSON.stringify({ ...good, until: 'soon' }) }],
    ['another key', { note: formatBroken(note) }],
  ];
  for (const [name, data] of cases) t.strictSame(parseBroken(data), [], name);
  t.strictSame(parseBroken(undefined), []);
  const many = Object.fromEntries(
    Array.from({ length: maxBrokenImages + 5 }, (_, index) => [
      keyOfBroken(`sha256:${index.toString(16).padStart(64, '0')}`, 'arm64') ?? '',
      formatBroken(note),
    ]),
  );
  t.equal(parseBroken(many).length, maxBrokenImages);
  const wide = { ...note, namespaces: Array.from({ length: 50 }, (_, index) => `n${index}`) };
  t.equal(parseBroken({ [key]: formatBroken(wide) })[0]?.namespaces.length, maxNamespaces);
});

t.test('a record applies in its namespaces until it expires', async (t) => {
  let now = 0;
  const other = { ...note, architecture: 'amd64', namespaces: ['shop', 'bank'], until: 500 };
  const broken = brokenImagesOf([note, other], () => now);
  t.equal(broken.size, 2);
  t.strictSame(broken.brokenOn(digest, 'shop'), ['amd64', 'arm64']);
  t.strictSame(broken.brokenOn(digest, 'bank'), ['amd64']);
  t.strictSame(broken.brokenOn(digest, 'elsewhere'), []);
  t.strictSame(broken.brokenOn(`sha256:${'b'.repeat(64)}`, 'shop'), []);
  now = 500;
  t.strictSame(broken.brokenOn(digest, 'shop'), ['arm64'], 'expired at its time');
  now = 1_000_000;
  t.strictSame(broken.brokenOn(digest, 'shop'), []);
  t.strictSame(noBrokenImages.brokenOn(digest, 'shop'), []);
});

t.test('a required CPU level is recorded, and its architecture is not broken', async (t) => {
  const level = (of: 2 | 3 | 4, namespaces = ['shop']) =>
    ({ ...note, architecture: 'amd64', level: of, namespaces }) as const;
  const key = keyOfBroken(digest, 'amd64', 3) ?? '';
  t.equal(key, `sha256-${'a'.repeat(64)}.amd64-v3`);
  t.strictSame(parseBroken({ [key]: formatBroken(level(3)) }), [level(3)]);
  for (const odd of ['amd64-v1', 'amd64-v5', 'arm64-v3', 'amd64-v33', 'amd64-v'])
    t.strictSame(parseBroken({ [`sha256-${'a'.repeat(64)}.${odd}`]: formatBroken(note) }), [], odd);
  t.equal(keyOfBroken(digest, 'arm64', 3), undefined);
  let now = 0;
  const notes = brokenImagesOf([note, level(2), level(3), level(4, ['bank'])], () => now);
  t.strictSame(notes.brokenOn(digest, 'shop'), ['arm64']);
  t.equal(notes.requiredLevel(digest, 'shop'), 3, 'the highest');
  t.equal(notes.requiredLevel(digest, 'bank'), 4);
  t.equal(notes.requiredLevel(digest, 'elsewhere'), undefined);
  now = note.until;
  t.equal(notes.requiredLevel(digest, 'shop'), undefined);
});

t.test('broken architectures are removed unless an operating system would have none left', async (t) => {
  const both = facts('amd64 arm64', { digest });
  t.strictSame(avoiding(both, ['arm64']), { ...facts('amd64', { digest }), brokenOn: ['arm64'] });
  t.equal(avoiding(both, ['amd64', 'arm64']), both, 'all of them: the list is unchanged');
  const one = facts('arm64', { digest });
  t.equal(avoiding(one, ['arm64']), one);
  const windows = facts('arm64 windows/amd64', { digest });
  t.equal(avoiding(windows, ['arm64']), windows, 'linux would have none left');
});
