import { array, assert, constantFrom, property, string } from 'fast-check';
import t from 'tap';
import { tableHeaders } from '../../../../daemon/containerd/config/table-headers.ts';

const cases: [name: string, text: string, headers: string[][]][] = [
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
  ['arrays of tables are none', '[[host.a]]\n[b]', [['b']]],
  ['comments', '# [a]\n[b] # [c]\nx = 1 # [d]\n[e]', [['b'], ['e']]],
  ['in a string', 'x = "[a]\\"[b]"\ny = \'[c]\'\n[d]', [['d']]],
  ['in a long string', 'x = """\n[a]\n\\"""\n[b]\n"""\n[c]', [['c']]],
  ['in a long literal', "x = '''\n[a]\\\n'''\n[c]", [['c']]],
  ['quotes that end a long string', 'x = """a"""""\n[b]', [['b']]],
  ['in an array', 'x = [\n [1],\n ["]"], # ]\n]\n[b]', [['b']]],
  ['in an inline table', 'x = { y = [\n1 ] }\n[b]', [['b']]],
  ['a key that is quoted', '"[a]" = 1\n\'[b]\' = 2\n[c]', [['c']]],
  ['with CRLF', '[a]\r\nx = 1\r\n[b]\r\n', [['a'], ['b']]],
];
for (const [name, text, headers] of cases) {
  t.test(name, async (t) => {
    t.same(tableHeaders(text), headers);
  });
}

t.test('it ends for whatever text', async () => {
  const pieces = constantFrom(
    '[',
    ']',
    '[[',
    '"',
    "'",
    '"""',
    "'''",
    '\\',
    '#',
    '\n',
    '.',
    '=',
    ' ',
    '{',
    '}',
    'a',
    '\\u00',
  );
  assert(
    property(array(pieces, { maxLength: 60 }), (parts) => Array.isArray(tableHeaders(parts.join('')))),
    { numRuns: 2000 },
  );
  assert(
    property(string({ unit: 'binary' }), (text) => Array.isArray(tableHeaders(text))),
    { numRuns: 500 },
  );
});

t.test('a long text takes no long time', async (t) => {
  const lines = 20_000;
  t.equal(tableHeaders('[host."a"]\nx = "y"\n'.repeat(lines)).length, lines);
  t.same(tableHeaders(`x = ${'['.repeat(1_000_000)}`), []);
  t.same(tableHeaders(`x = "${'\\'.repeat(1_000_000)}`), []);
  t.same(tableHeaders(`${'# \n'.repeat(200_000)}[a]`), [['a']]);
});
