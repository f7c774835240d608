import * as fc from 'fast-check';
import t from 'tap';
import { formatKey, formatToml, parseToml } from '../../../src/policy/configuration/toml.ts';
import type { TomlValue } from '../../../src/policy/settings/setting.ts';

t.test('errors have a line and a short reason', async (t) => {
  const cases: [string, number, RegExp][] = [
    ['a = 1\nb = [1,\nc = 2', 3, /^"c" was not expected here$/],
    ['a = 1\nb = arm64 # c', 2, /^text needs quotes: write "arm64"$/],
    ['a = x y', 1, /^"x" was not expected here$/],
    ['a = true\na = true', 2, /redefine existing key 'a'/],
    ['a = 1\na = 2', 2, /redefine existing key 'a'/],
    ['\n\nb = ', 3, /end of input was not expected/],
    ['a = 99999999999999999999', 1, /64-bit/],
    [`a = ${'['.repeat(100)}${']'.repeat(100)}`, 1, /./],
    [`${'x'.repeat(5000)} y`, 1, /^.{1,170}$/],
  ];
  for (const [text, where, message] of cases)
    t.throws(() => parseToml(text), { where, message, name: 'TomlError' }, text.slice(0, 40));
});

t.test('values are formatted on one line', async (t) => {
  const cases: [TomlValue, string][] = [
    ['a "b"\n', '"a \\"b\\"\\n"'],
    ['\u007F', String.raw`"\u007F"`],
    [1, '1'],
    [true, 'true'],
    [[], '[]'],
    [['a', ['b']], '["a", ["b"]]'],
    [{}, '{}'],
    [{ a: 1, 'b c': { d: [] } }, '{ a = 1, "b c" = { d = [] } }'],
  ];
  for (const [value, text] of cases) t.equal(formatToml(value), text);
  t.equal(formatKey('a-b_1'), 'a-b_1');
  t.equal(formatKey('a.b'), '"a.b"');
});

t.test('property: parsing reverses formatting', async () => {
  const { value } = fc.letrec<{ value: TomlValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
      fc.integer(),
      fc.boolean(),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(value, (value) => {
      const { back } = parseToml(`back = ${formatToml(value)}`).value;
      // Objects of TOML have no prototype.
      return JSON.stringify(back) === JSON.stringify(value);
    }),
    { numRuns: 200 },
  );
});

const document = `# a comment with [brackets] and "quotes
plain = 1   # 2
a.b.c = 'x'
"quoted key" = "a \\" = b"

list = [ # 7
  "one", # eight ]
  'two',
  [ "three",
    { four = 4,
      five.six = 6 } ],
]
text = """
[not.a.table]
key = 1 \\"""
"""
literal = '''
other = 2
'''
after = 2020-01-01T00:00:00Z
[table]
key = { x = 1, "y z" = [1, 2] }
[table.inner]
deep = true
[ "dotted.name" . b ]
c = 1
[[array]]
n = 1
[[array]]
n = 2
[array.sub]
m = 1
[[array.more]]
o = 1
[[array.more]]
o = 2
`;

t.test('the line of each key, table and element is found', async (t) => {
  const parsed = parseToml(document);
  const cases: [(string | number)[], number][] = [
    [['plain'], 2],
    [['a'], 3],
    [['a', 'b', 'c'], 3],
    [['quoted key'], 4],
    [['list'], 6],
    [['list', 0], 7],
    [['list', 1], 8],
    [['list', 2, 0], 9],
    [['list', 2, 1, 'four'], 10],
    [['list', 2, 1, 'five', 'six'], 11],
    [['text'], 13],
    [['literal'], 17],
    [['after'], 20],
    [['table'], 21],
    [['table', 'key'], 22],
    [['table', 'key', 'y z', 1], 22],
    [['table', 'inner', 'deep'], 24],
    [['dotted.name', 'b', 'c'], 26],
    [['array'], 27],
    [['array', 0], 27],
    [['array', 0, 'n'], 28],
    [['array', 1], 29],
    [['array', 1, 'n'], 30],
    [['array', 1, 'sub', 'm'], 32],
    [['array', 1, 'more', 0, 'o'], 34],
    [['array', 1, 'more', 1, 'o'], 36],
    // The line of the nearest table.
    [['table', 'inner', 'missing'], 23],
    [['array', 1, 'missing'], 29],
    [['nowhere'], 1],
    [[], 1],
  ];
  for (const [path, expected] of cases) t.equal(parsed.lineOf(path), expected, JSON.stringify(path));
});

t.test('CRLF and a byte order mark do not shift lines', async (t) => {
  const parsed = parseToml('\uFEFFa = 1\r\nb = [\r\n1,\r\n2]\r\n[c]\r\nd = 1\r\n');
  t.equal(parsed.lineOf(['a']), 1);
  t.equal(parsed.lineOf(['b', 1]), 4);
  t.equal(parsed.lineOf(['c', 'd']), 6);
});

t.test('table headers are in their order', async (t) => {
  const cases: [text: string, headers: string[][]][] = [
    ['', []],
    ['[a]\n[b.c]\n[ d . e ]\n', [['a'], ['b', 'c'], ['d', 'e']]],
    [String.raw`[host."\u0061\"/x.y"]`, [['host', 'a"/x.y']]],
    [
      '[host.a.header]\n[host.a]\n',
      [
        ['host', 'a', 'header'],
        ['host', 'a'],
      ],
    ],
    ['[[host.a]]\n[b]', [['b']]],
  ];
  for (const [text, headers] of cases) t.strictSame(parseToml(text).headers, headers, text);
});
