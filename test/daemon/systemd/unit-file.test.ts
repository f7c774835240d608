import t from 'tap';
import { parseEnvironmentFile, parseUnit, variableOf, wordsOf } from '../../../daemon/systemd/unit-file.ts';
import { withUserMs } from '../../support/cpu-time.ts';

t.test('assignments of a unit file are read', async (t) => {
  const unit = String.raw`
# [Service]
[Unit]
Description = a=b
[Service]
Environment="HTTPS_PROXY=http://p:1" \
# a comment in between
; another
  NO_PROXY=.corp
 ExecStart = /usr/bin/containerd
no assignment
[Install]
WantedBy=multi-user.target
Broken \ `;
  t.strictSame(parseUnit(unit), [
    { section: 'Unit', key: 'Description', value: 'a=b' },
    { section: 'Service', key: 'Environment', value: '"HTTPS_PROXY=http://p:1"    NO_PROXY=.corp' },
    { section: 'Service', key: 'ExecStart', value: '/usr/bin/containerd' },
    { section: 'Install', key: 'WantedBy', value: 'multi-user.target' },
  ]);
});

t.test('two backslashes at the end of a line are one backslash, not a continuation', async (t) => {
  const section = '';
  t.strictSame(parseUnit('A=a\\\\\nB=b\\\\\\\nc'), [
    { section, key: 'A', value: 'a\\\\' },
    { section, key: 'B', value: 'b\\\\ c' },
  ]);
});

t.test('values are split into words', async (t) => {
  const cases: [string, string[]][] = [
    // The examples of systemd.exec(5).
    [
      String.raw`"VAR1=word1 word2" VAR2=word3 "VAR3=$word 5 6"`,
      ['VAR1=word1 word2', 'VAR2=word3', 'VAR3=$word 5 6'],
    ],
    [String.raw`ONE='one' "TWO='two two' too" THREE=`, ['ONE=one', "TWO='two two' too", 'THREE=']],
    [
      String.raw`A=a\x20b B=\"c\" C="d\"e" D=f\\g E=x\sy`,
      ['A=a b', 'B="c"', 'C=d"e', String.raw`D=f\g`, 'E=x y'],
    ],
    ['P=http://ann:p%%40ss@p:1', ['P=http://ann:p%40ss@p:1']],
    ['', []],
    ['  a  ', ['a']],
    ["it's", ["it's"]],
  ];
  for (const [value, words] of cases) t.strictSame(wordsOf(value), words, value);
});

t.test('environment files are read', async (t) => {
  const cases: [text: string, variables: Record<string, string>][] = [
    ['A=1\n# B=2\n;C=3\n\nD = 4 \n', { A: '1', D: '4' }],
    ['A=\'a b\'\nB="c \\"d\\" \\x"\nC=\'x\'"y"z\n', { A: 'a b', B: 'c "d" \\x', C: 'xyz' }],
    ['A=a\\\nb\nB=c\\ d\n', { A: 'ab', B: 'c d' }],
    ['A="a\nb"\nB=1', { A: 'a\nb', B: '1' }],
    ['export A=1\n1A=2\nno line\n=3\nB=', { B: '' }],
    ['A=it\'s "quoted"\n', { A: 'it\'s "quoted"' }],
    // The states of systemd's env-file.c at a carriage return, at the end of the file, and behind a
    // backslash.
    ['# comment\r\nA=1\r\n\r\nB="b"\r\n', { A: '1', B: 'b' }],
    ['A="b\nC=d\n', { A: 'b\nC=d\n' }],
    ["A='b", { A: 'b' }],
    ['A=b\\', { A: 'b' }],
    ['A=b\\  \nB= c \\\\ ', { A: 'b ', B: 'c \\' }],
    ['A=a\0b\nB=1', { B: '1' }],
    ['', {}],
  ];
  for (const [text, variables] of cases)
    t.strictSame(parseEnvironmentFile(text), Object.entries(variables), JSON.stringify(text));
});

t.test('files are read in linear time', async (t) => {
  // Half of the maximum size that is read. In quadratic time it would take 15 s.
  const bytes = 131_072;
  const quotes = ['"', `"'`, 'a="', "a='\n", 'a=\\"'];
  const files = ['a=\\\n', '\\\n', ...quotes, '=', ' ', '\n \n', '# \r', 'a', 'a ', '\\'];
  const [, ms] = await withUserMs(() => {
    for (const part of files) {
      const text = part.repeat(Math.floor(bytes / part.length) - 1);
      for (const each of [text, `${text}\\`, `A="${text}`, `A=${text}`]) {
        parseEnvironmentFile(each);
        parseUnit(each);
        wordsOf(each);
      }
    }
  });
  t.ok(ms < 10_000, `${ms} ms`);
});

t.test('only LF ends a line, not other Unicode line separators', async (t) => {
  const found = parseEnvironmentFile('# a\u2028b\nA=1 # a\u2028b\nB=2');
  t.strictSame(found, Object.entries({ A: '1 # a\u2028b', B: '2' }), 'environment files');
  const [unit] = parseUnit('A=a\u2028b');
  t.equal(unit?.value, 'a\u2028b', 'units');
});

t.test('a variable with NUL is refused', async (t) => {
  t.equal(variableOf('A=a\0'), undefined);
  t.strictSame(variableOf('A=a\nb'), ['A', 'a\nb']);
});
