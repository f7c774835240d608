import t from 'tap';
import { parseToml } from '../../../src/policy/configuration/toml.ts';

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
  ];
  for (const [path, expected] of cases) t.equal(parsed.lineOf(path), expected, JSON.stringify(path));
});

t.test('an unknown path has the line of the nearest table', async (t) => {
  const parsed = parseToml(document);
  t.equal(parsed.lineOf(['table', 'inner', 'missing']), 23);
  t.equal(parsed.lineOf(['array', 1, 'missing']), 29);
  t.equal(parsed.lineOf(['nowhere']), 1);
  t.equal(parsed.lineOf([]), 1);
});

t.test('CRLF and a byte order mark do not shift lines', async (t) => {
  const parsed = parseToml('\uFEFFa = 1\r\nb = [\r\n1,\r\n2]\r\n[c]\r\nd = 1\r\n');
  t.equal(parsed.lineOf(['a']), 1);
  t.equal(parsed.lineOf(['b', 1]), 4);
  t.equal(parsed.lineOf(['c', 'd']), 6);
});

const headerCases: [name: string, text: string, headers: string[][]][] = [
  ['nothing', '', []],
  ['plain and dotted', '[a]\n[b.c]\n[ d . e ]\n', [['a'], ['b', 'c'], ['d', 'e']]],
  ['quoted and escaped parts', String.raw`[host."\u0061\"/x.y"]`, [['host', 'a"/x.y']]],
  [
    'in their order',
    '[host.a.header]\n[host.a]\n',
    [
      ['host', 'a', 'header'],
      ['host', 'a'],
    ],
  ],
  ['not arrays of tables', '[[host.a]]\n[b]', [['b']]],
];
for (const [name, text, headers] of headerCases) {
  t.test(`table headers: ${name}`, async (t) => {
    t.strictSame(parseToml(text).headers, headers);
  });
}
