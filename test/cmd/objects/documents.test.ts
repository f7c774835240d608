import { Readable } from 'node:stream';
import { writeFileSync } from 'node:fs';
import t from 'tap';
import {
  maxDocumentBytes,
  parseDocuments,
  parseObjects,
  readText,
  type Steps,
} from '../../../cmd/objects/documents.ts';
import { files } from '../world.ts';

/** Each object as JSON, after its line. */
const parse = (text: string) =>
  parseObjects({ file: 'f.yaml', text }).map(({ value, line }) => `${line} ${JSON.stringify(value)}`);

t.test('objects have the line on which they begin', (t) => {
  const nested = '{"kind":"List","items":[{"kind":"List","items":[{"kind":"A"}]},{"kind":"B"}]}';
  const prototype = '{"kind":"A","__proto__":{"kind":"B"}}';
  const cases: [what: string, text: string, ...found: string[]][] = [
    ['nothing', ''],
    ['empty documents', '---\n---\n# comment\n---\nnull\n'],
    ['one', 'kind: Pod\n', '1 {"kind":"Pod"}'],
    ['several', '# c\nkind: A\n---\n\nkind: B\n', '2 {"kind":"A"}', '5 {"kind":"B"}'],
    ['JSON', ' {"kind": "Pod"}\n', '1 {"kind":"Pod"}'],
    ['YAML in flow style', '{kind: Pod}', '1 {"kind":"Pod"}'],
    ['anchors and merges', 'a: &x {b: 1}\nc: {<<: *x, d: 2}\n', '1 {"a":{"b":1},"c":{"b":1,"d":2}}'],
    ['a list', 'kind: List\nitems: [{kind: A}, {kind: B}]', '1 {"kind":"A"}', '1 {"kind":"B"}'],
    ['a list in a list', nested, '1 {"kind":"A"}', '1 {"kind":"B"}'],
    [
      'a typed list',
      '{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{}}]}',
      '1 {"apiVersion":"v1","kind":"Pod","metadata":{}}',
    ],
    ['an empty list', 'kind: List\nitems:\n'],
    ['a malformed list', 'kind: List\nitems: 3\n', '1 {"kind":"List","items":3}'],
    ['a key of Object.prototype', prototype, `1 ${prototype}`],
    ['a text', 'hello', '1 "hello"'],
  ];
  for (const [what, text, ...found] of cases) t.strictSame(parse(text), found, what);
  t.end();
});

t.test('each value has a line', (t) => {
  const linesIn = (text: string, paths: readonly Steps[]) =>
    parseDocuments({ file: 'f.yaml', text }).map((document) => paths.map((path) => document.lineOf(path)));
  const anchors =
    'a: &x\n  image: one\nb:\n  <<: [*x]\n  c: 1\nd: [*x, {image: two}]\n---\ne: {image:\n    three}\n';
  t.strictSame(
    linesIn(anchors, [
      ['a', 'image'],
      ['b', 'image'],
      ['b', 'c'],
      ['d', 0, 'image'],
      ['d', 1, 'image'],
      ['e', 'image'],
    ]),
    [
      [2, 4, 5, 6, 6, 1],
      [8, 8, 8, 8, 8, 9],
    ],
    'behind an alias or a merge: where it is used',
  );
  t.strictSame(linesIn('{"a":\n[1,\n{"image":"x"}]}', [['a', 1, 'image'], ['b']]), [[1, 1]], 'JSON');
  t.end();
});

t.test('errors name the position and quote no content', (t) => {
  const laughs = Array.from(
    { length: 12 },
    (_, level) =>
      `l${level}: &l${level} [${Array.from({ length: 9 }, () => (level === 0 ? 'ha' : `*l${level - 1}`)).join(',')}]`,
  );
  const cases: [what: string, text: string, message: RegExp][] = [
    ['bad indentation', 'kind: Pod\n  spec: secret\n', /^f\.yaml:\d+:\d+: /],
    ['the second document', 'kind: A\n---\nkind: [secret\n', /^f\.yaml:[34]:\d+: /],
    ['a key twice', 'kind: A\nkind: secret\n', /^f\.yaml:2:1: Map keys must be unique/],
    ['an alias to nothing', 'kind: *secret\n', /^f\.yaml:1:\d+: Unresolved alias/],
    ['an open quote', 'kind: "secret', /^f\.yaml:1:\d+: /],
    ['broken JSON', '{"kind": "Pod", "a": secret"', /^f\.yaml:1:\d+: /],
    ['too many aliases', laughs.join('\n'), /^f\.yaml:1:1: Excessive alias count/],
    ['a list that contains itself', 'secret: &a [*a]', /^f\.yaml:1:1: an anchor is inside/],
    [
      'an object that contains itself',
      'kind: A\n---\na: &a {b: &c {d: *a}}\nc: *c',
      /^f\.yaml:3:1: an anchor is inside/,
    ],
    ['deep YAML', `a: ${'['.repeat(20_000)}`, /^f\.yaml/],
  ];
  for (const [what, text, message] of cases) {
    t.throws(() => parse(text), { name: 'UsageError', message }, what);
    try {
      parse(text);
    } catch (error) {
      t.notMatch(String(error), /secret/, what);
    }
  }
  t.end();
});

t.test('documents are read from files and standard input', async (t) => {
  const { directory, 'a.yaml': file } = files(t, { 'a.yaml': 'kind: Pod' });
  const none = Readable.from([]);
  t.strictSame(await readText(file, none), { file, text: 'kind: Pod' });
  t.strictSame(await readText('-', Readable.from(['kind: ', Buffer.from('Pod')])), {
    file: 'standard input',
    text: 'kind: Pod',
  });
  const endless = Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(1_048_576, 32);
    })(),
  );
  await t.rejects(readText('-', endless), { name: 'FileError', message: /standard input: .*10485760/ });
  await t.rejects(readText(`${directory}/gone`, none), /there is no such file/);
  writeFileSync(file, Buffer.alloc(maxDocumentBytes + 1, 32));
  await t.rejects(readText(file, none), /is larger than 10485760 bytes/);
  await t.rejects(readText('-', Readable.from([Buffer.from([0xff])])), /is not UTF-8/);
});
