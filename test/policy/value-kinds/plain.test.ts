import t from 'tap';
import {
  choice,
  duration,
  flag,
  integer,
  listOf,
  matching,
  objectName,
  size,
  tableOf,
  text,
} from '../../../src/policy/value-kinds/plain.ts';
import type { Kind } from '../../../src/policy/settings/setting.ts';
import { read, readText, never } from '../report.ts';
import {
  agentsLocation,
  listenAddress,
  registryHost,
  registryPattern,
  registryProxy,
} from '../../../src/policy/value-kinds/addresses.ts';

const even = text('even', (value) => (value.length % 2 === 0 ? undefined : 'must be even'));
const mode = choice(['soft', 'hard']);
const digit = integer(1, 5);
const table = tableOf(matching('', ''), digit);
const evens = listOf(even);
const short = duration(1000, 60_000);

t.test('TOML values are read or refused with a message', async (t) => {
  const cases: [string, Kind<unknown>, unknown, unknown][] = [
    ['text', even, 'ab', 'ab'],
    ['text checked', even, 'abc', ': must be even'],
    ['text empty', even, '', ': must not be empty'],
    ['text with NUL', even, 'a\0', ': must not contain a NUL character'],
    ['text not number', even, 3, ': must be a string in quotes, not a number'],
    ['text not list', even, [], ': must be a string in quotes, not a list'],
    ['text not date', even, new Date(0), ': must be a string in quotes, not a date'],
    ['choice', mode, 'hard', 'hard'],
    ['choice near', mode, 'sfot', ': must be one of soft, hard, not "sfot"; did you mean soft?'],
    ['choice not', mode, true, ': must be one of soft, hard, not true'],
    ['flag on', flag, true, true],
    ['flag off', flag, false, false],
    ['flag text', flag, 'true', ': must be true or false, not "true"'],
    ['integer low', digit, 1, 1],
    ['integer high', digit, 5, 5],
    ['integer below', digit, 0, ': must be a whole number from 1 to 5, not 0'],
    ['integer above', digit, 6, ': must be a whole number from 1 to 5, not 6'],
    ['integer part', digit, 1.5, ': must be a whole number from 1 to 5, not 1.5'],
    ['duration', short, '1s', 1000],
    ['duration longest', short, '1m', 60_000],
    ['duration zero', duration(0, 60_000), '0s', 0],
    ['duration below', short, '999ms', ': must be from 1s to 1m, not "999ms"'],
    ['duration above', short, '61s', ': must be from 1s to 1m, not "61s"'],
    ['duration number', duration(0, 60_000), 5, ': must be a duration such as 7d, 1h30m or 500ms, not 5'],
    ['size', size(1, 2048), '2Ki', 2048],
    ['size lowest', size(1024, 2048), '1Ki', 1024],
    ['size number', size(1, 2048), 100, 100],
    ['size above', size(1, 2048), '3Ki', ': must be from 1 to 2Ki, not "3Ki"'],
    ['size below', size(1024, 2048), 10, ': must be from 1Ki to 2Ki, not 10'],
    ['size not', size(1, 2048), '2KB', ': must be a size such as 64Mi, not "2KB"'],
    ['size list', size(1, 2048), [], ': must be a size such as 64Mi, not a list'],
    ['list', evens, ['ab', 'cd'], ['ab', 'cd']],
    ['list empty', evens, [], []],
    ['list of wrong', evens, ['a', 'bc', 1], '0: must be even; 2: must be a string in quotes, not a number'],
    ['list twice', evens, ['ab', 'cd', 'ab'], '2: "ab" is in the list twice'],
    ['list text', evens, 'ab', ': must be a list in brackets, not a string'],
    ['table', table, { a: 1 }, { a: 1 }],
    ['table value', table, { a: 9 }, 'a: must be a whole number from 1 to 5, not 9'],
    ['table key', tableOf(matching('^[^b]$', '{} is b'), digit), { a: 1, b: 2 }, 'b: "b" is b'],
    ['table list', table, [], ': must be a table, not a list'],
  ];
  for (const [name, kind, value, expected] of cases) t.strictSame(read(kind, value), expected, name);
});

t.test('texts of variables and flags are read or refused with a message', async (t) => {
  const weights = tableOf(matching('', ''), integer(1, 100));
  const cases: [string, Kind<unknown>, string, unknown][] = [
    ['text', even, 'ab', 'ab'],
    ['flag', flag, 'false', false],
    ['flag on', flag, 'true', true],
    ['flag other', flag, 'yes', ': must be true or false, not "yes"'],
    ['integer', integer(-5, 5), '-5', -5],
    ['integer hex', integer(0, 50), '0x10', ': must be a whole number, not "0x10"'],
    ['integer empty', integer(0, 50), '', ': must be a whole number, not ""'],
    ['duration', duration(0, 1000), '1s', 1000],
    ['size', size(0, 2048), '1024', 1024],
    ['list', evens, 'ab, cd', ['ab', 'cd']],
    ['list empty', evens, ' ', []],
    ['list with hole', evens, 'ab,,cd', '1: must not be empty'],
    ['table', weights, 'arm64=80, amd64 = 20', { arm64: 80, amd64: 20 }],
    ['table empty', weights, '', {}],
    ['table twice', weights, 'a=1,a=2', ': names something twice: "a=1,a=2"'],
    ['table without value', weights, 'a', ': must be name=value pairs separated by commas, not "a"'],
    ['table without name', weights, '=1', ': must be name=value pairs separated by commas, not "=1"'],
    ['table wrong value', weights, 'a=x', ': must be a whole number, not "x"'],
  ];
  for (const [name, kind, given, expected] of cases) t.strictSame(readText(kind, given), expected, name);
});

t.test('values are written as users write them', async (t) => {
  const cases: [Kind<unknown>, unknown, unknown][] = [
    [duration(0, 1e9), 5_400_000, '1h30m'],
    [size(0, 1e9), 2048, '2Ki'],
    [listOf(duration(0, 1e9)), [1000], ['1s']],
    [tableOf(matching('', ''), size(0, 1e9)), { a: 1024 }, { a: '1Ki' }],
    [flag, false, false],
    [integer(0, 9), 3, 3],
  ];
  for (const [kind, value, expected] of cases) t.strictSame(kind.write(value), expected);
  for (const { isList } of [evens, table]) t.ok(isList, 'its flag may be repeated');
});

t.test('keys named like prototype members are ordinary keys', async (t) => {
  const value = read(table, JSON.parse('{"__proto__":1,"constructor":2}')) as object;
  t.strictSame(Object.keys(value), ['__proto__', 'constructor']);
  t.equal(Object.getPrototypeOf(value), Object.prototype);
});

t.test('a long wrong value is truncated in the message', async (t) => {
  t.equal(read(choice(['a']), 'x'.repeat(78)), `: must be one of a, not "${'x'.repeat(78)}"`);
  t.equal(read(choice(['a']), 'x'.repeat(79)), `: must be one of a, not "${'x'.repeat(79)}…`);
});

const words = (text: string): string[] => text.split(' ');
const long = 'x.'.repeat(126);

const cases: [string, Kind<unknown>, good: string[], bad: string[]][] = [
  [
    'object name',
    objectName,
    ['a', 'archwright-ca', 'a.b-2.c', 'x'.repeat(253)],
    [...words('*a -a a- A a_b a..b .a'), 'a b', 'x'.repeat(254), 'a-'.repeat(126)],
  ],
  [
    'listen',
    listenAddress,
    words('127.0.0.1:8443 0.0.0.0:0 [::1]:80 :8443 localhost:65535'),
    ['8443', '127.0.0.1', '127.0.0.1:65536', 'https://a:1', 'a:b', '::1:80', ' :1'],
  ],
  [
    'registry host',
    registryHost,
    [
      ...words('docker.io registry.example.com:5000 localhost:5000 10.0.0.1 [::1]:5000 [fd00::1]'),
      ...words(`a.io:65535 [1::5:6:7] ${long}x ${long}x:5000`),
    ],
    [
      ...words('https://docker.io docker.io/library *.io -a.io a-.io a..b a: a:65536 [1:2] ::1 [::g]'),
      ...words(`u@h a.5 1.2.3.256 [1:2::3:4:5:6:7:8] ${long}xy`),
      'a b',
    ],
  ],
  [
    'registry pattern',
    registryPattern,
    words('*.corp.example.com * a*.io:5000 docker.io registry.corp:5000/team/x'),
    ['https://*', 'a/../b', 'a/b c', '* *', '/a', ''],
  ],
  [
    'agents',
    agentsLocation,
    words('https://10.0.0.1:9443 https://[::1]:9443 https://agent.example endpointslices:archwright/agent'),
    [
      ...words('http://a:1 https://a:1/ https://u:p@a:1 https:a:1 dns:a:1 https://a:1?x=1 https://a:1#x'),
      ...words(
        'https://a:99999 endpointslices:agent endpointslices:a/b/c endpointslices:A/b agents https://',
      ),
    ],
  ],
  [
    'proxy',
    registryProxy,
    [
      ...words(
        'docker.io=docker-proxy.example.com docker.io=mirror:5000/hub localhost:5000=http://mirror:5000',
      ),
      '[::1]:5000=https://[::1]:5001/a/b',
    ],
    [
      ...words('docker.io docker.io= =mirror docker.io=ftp://mirror docker.io=mirror/../x'),
      ...words('docker.io=u:p@mirror docker.io=mirror?x=1 https://docker.io=mirror'),
      ...words('docker.io=mirror/#a docker.io=a=b'),
    ],
  ],
];

for (const [name, kind, good, bad] of cases) {
  t.test(`${name}: valid and invalid values`, async (t) => {
    for (const value of good) t.not(kind.read(value, never), undefined, value);
    for (const value of [...bad, 1, null]) {
      const reports: string[] = [];
      t.equal(
        kind.read(value, (message) => reports.push(message)),
        undefined,
        String(value),
      );
      t.equal(reports.length, 1, String(value));
      t.match(reports[0], /must (?:not )?be/, String(value));
    }
  });
}

t.test('a proxy is read and written', async (t) => {
  const value = { registry: 'localhost:5000', endpoint: 'http://mirror:5000/a' };
  t.strictSame(registryProxy.read('localhost:5000=http://mirror:5000/a', never), value);
  t.equal(registryProxy.write(value), 'localhost:5000=http://mirror:5000/a');
});
