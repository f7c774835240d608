import * as fc from 'fast-check';
import t from 'tap';
import { locate, tableHeaders } from '../../../src/policy/configuration/toml-positions.ts';
import { formatKey, parseToml } from '../../../src/policy/configuration/toml.ts';

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
  parseToml(document);
  const line = locate(document);
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
  ];
  for (const [path, expected] of cases) t.equal(line(path), expected, JSON.stringify(path));
});

t.test('an unknown path has the line of the nearest table', async (t) => {
  const line = locate(document);
  t.equal(line(['table', 'inner', 'missing']), 23);
  t.equal(line(['array', 1, 'missing']), 29);
  t.equal(line(['nowhere']), 1);
  t.equal(line([]), 1);
});

t.test('CRLF and a byte order mark do not shift lines', async (t) => {
  const line = locate('\uFEFFa = 1\r\nb = [\r\n1,\r\n2]\r\n[c]\r\nd = 1\r\n');
  t.equal(line(['a']), 1);
  t.equal(line(['b', 1]), 4);
  t.equal(line(['c', 'd']), 6);
});

t.test('property: every key is found on its line', async () => {
  const value = fc.constantFrom(
    '1',
    '"a # ]"',
    "'}'",
    '[1, "," ]',
    '{ a = "[", b = [] }',
    '"""x\ny = 1\n"""',
    "''''a'''",
    'true',
  );
  const key = fc.string({ minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(key, value), { maxLength: 8, selector: ([name]) => name }),
      (pairs) => {
        let text = '';
        const expected = new Map<string, number>();
        for (const [name, written] of pairs) {
          expected.set(name, text.split('\n').length);
          text += `${formatKey(name)} = ${written} # end\n`;
        }
        parseToml(text);
        const line = locate(text);
        return [...expected].every(([name, at]) => line([name]) === at);
      },
    ),
    { numRuns: 300 },
  );
});

const headerCases: [name: string, text: string, headers: string[][]][] = [
  ['nothing', '', []],
  ['plain and dotted', '[a]\n[b.c]\n[ d . e ]\n', [['a'], ['b', 'c'], ['d', 'e']]],
  [
    'quoted parts',
    `[host."https://a.example/x.y"]\n[host.'it"s']`,
    [
      ['host', 'https://a.example/x.y'],
      ['host', 'it"s'],
    ],
  ],
  ['escapes', String.raw`[host."\u0061\"\t\U00000062\x63"]`, [['host', 'a"\tbc']]],
  [
    'subtables',
    '[host.a.header]\n[host.a]\n',
    [
      ['host', 'a', 'header'],
      ['host', 'a'],
    ],
  ],
  ['not arrays of tables', '[[host.a]]\n[b]', [['b']]],
  ['comments', '# [a]\n[b] # [c]\nx = 1 # [d]\n[e]', [['b'], ['e']]],
  ['in a string', 'x = "[a]\\"[b]"\ny = \'[c]\'\n[d]', [['d']]],
  ['in a long string', 'x = """\n[a]\n\\"""\n[b]\n"""\n[c]', [['c']]],
  ['in a long literal', "x = '''\n[a]\\\n'''\n[c]", [['c']]],
  ['quotes that end a long string', 'x = """a"""""\n[b]', [['b']]],
  ['in an array', 'x = [\n [1],\n ["]"], # ]\n]\n[b]', [['b']]],
  ['in an inline table', 'x = { y = [\n1 ] }\n[b]', [['b']]],
  ['a quoted key', '"[a]" = 1\n\'[b]\' = 2\n[c]', [['c']]],
  ['with CRLF', '[a]\r\nx = 1\r\n[b]\r\n', [['a'], ['b']]],
];
for (const [name, text, headers] of headerCases) {
  t.test(`table headers: ${name}`, async (t) => {
    t.same(tableHeaders(text), headers);
  });
}

t.test('property: the scanner terminates on any text', async () => {
  const pieces = [...'[ [[ ] { } " """ = . , # a'.split(' '), "'", "'''", '\n', ' ', '\\', '\\u00'];
  const unit = fc.constantFrom(...pieces);
  const texts = fc.oneof(fc.string({ unit, maxLength: 60 }), fc.string({ unit: 'binary' }));
  fc.assert(
    fc.property(texts, (text) => locate(text)(['a']) >= 1 && Array.isArray(tableHeaders(text))),
    { numRuns: 3000 },
  );
});

t.test('long texts are scanned in linear time', async (t) => {
  const lines = 20_000;
  t.equal(tableHeaders('[host."a"]\nx = "y"\n'.repeat(lines)).length, lines);
  t.same(tableHeaders(`x = ${'['.repeat(1_000_000)}`), []);
  t.same(tableHeaders(`x = "${'\\'.repeat(1_000_000)}`), []);
  t.same(tableHeaders(`${'# \n'.repeat(200_000)}[a]`), [['a']]);
});
