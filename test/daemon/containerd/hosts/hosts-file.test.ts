import t from 'tap';
import { parseHostsFile } from '../../../../daemon/containerd/hosts/hosts-file.ts';
import { rulesFor } from '../../../../daemon/containerd/config/rules.ts';
import { reveal } from '../../../../src/telemetry/secret.ts';
import { like } from '../../../support/like.ts';

const newest = rulesFor();
const parse = (text: string, version?: string) =>
  parseHostsFile('/d', text, version === undefined ? newest : rulesFor(version));
const names = (text: string, version?: string) =>
  parse(text, version).map(({ scheme, host, path }) => `${scheme}://${host}${path}`);

const [a, b] = ['https://a/v2', 'https://b/v2'];
const orders: [name: string, text: string, hosts: string[]][] = [
  ['order of headers, not of names', '[host.z]\n[host.a]', ['https://z/v2', 'https://a/v2', '://']],
  ['names that look like numbers', '[host.z]\n[host.1]', ['https://z/v2', 'https://1/v2', '://']],
  ['a subtable behind its host', '[host.a]\n[host.a.header]\n[host.b]', [a, b, '://']],
  ['a subtable before its host', '[host.a.header]\n[host.b]\n[host.a]', [a, b, a, '://']],
  ['a subtable alone', '[host.a.header]\nx = "y"', ['https://a/v2', '://']],
  ['an empty name at the start is ignored', '[host.""]\n[host.a]', ['https://a/v2', '://']],
  ['an empty name elsewhere counts', '[host.a]\n[host.""]', ['https://a/v2', '://', '://']],
  ['inline tables are ignored', '[host]\na = { skip_verify = true }', ['://']],
  ['dotted keys are ignored', 'host.a.skip_verify = true', ['://']],
  ['other tables are ignored', '[hosts.a]\n[other.host.b]\n[HOST.c]', ['://']],
  ['server comes last', 'server = "s.example"\n[host.a]', ['https://a/v2', 'https://s.example/v2']],
];
for (const [name, text, hosts] of orders) {
  t.test(name, async (t) => {
    t.strictSame(names(text), hosts);
  });
}

const urls: [url: string, extra: string, host: string][] = [
  ['a.example', '', 'https://a.example/v2'],
  ['a.example:5000', '', 'https://a.example:5000/v2'],
  ['http://a.example', '', 'http://a.example/v2'],
  ['HTTP://a.example', '', 'https://HTTP:/a.example/v2'],
  ['httpd.example', '', '://httpd.example/v2'],
  ['httpd.example:5000', '', 'httpd.example:///v2'],
  ['https://u:p@a.example/x?y#z', '', 'https://a.example/x/v2'],
  ['https://a.example/x/../y//', '', 'https://a.example/y/v2'],
  ['https://a.example/', '', 'https://a.example//v2'],
  ['https://a.example/x/v2', '', 'https://a.example/x/v2'],
  ['https://a.example/x', 'override_path = true', 'https://a.example/x'],
  ['https://a.example', 'override_path = true', 'https://a.example'],
  ['https://[::1]:5000', '', 'https://[::1]:5000/v2'],
];
for (const [url, extra, host] of urls) {
  t.test(`the host ${url} ${extra}`, async (t) => {
    t.equal(names(`[host."${url}"]\n${extra}`)[0], host);
  });
}

const refused: [name: string, text: string, error: string | RegExp][] = [
  ['an unknown capability', '[host.a]\ncapabilities = ["fetch"]', 'unknown capability fetch'],
  ['a capability of the root', 'capabilities = ["x"]', 'unknown capability x'],
  ['a number as ca', 'ca = 3', /^ca must be/],
  ['a number in ca', 'ca = ["a", 3]', /^ca must be/],
  ['a boolean as client', 'client = true', /^client must be/],
  ['a number in client', 'client = [3]', /^client must be/],
  ['three in a pair', 'client = [["a", "b", "c"]]', /^client must be/],
  ['one in a pair', 'client = [["a"]]', /^client must be/],
  [
    'a number as header',
    '[header]\nx-key = 12345678',
    /^the header "x-key" must be a string or a list of strings$/,
  ],
  [
    'a number in a header',
    '[header]\nx = ["a", 12345678]',
    /^the header "x" must be a string or a list of strings$/,
  ],
  ['an invalid duration', 'dial_timeout = "soon"', /^dial_timeout must be/],
  ['a host with a space', '[host."https://u:secret1@a b"]', /^https:\/\/a b is not a URL$/],
];
for (const [name, text, message] of refused) {
  t.test(`${name} makes the file invalid`, async (t) => {
    t.throws(() => parse(text), { name: 'InvalidConfig', message });
  });
}

const mistyped = [
  'server = 3',
  'host = "x"',
  '[host]\na = 3',
  '[[host.a]]',
  'skip_verify = "yes"',
  'skip_verify = "yes"\nSKIP_VERIFY = true',
  'override_path = 1',
  'capabilities = "pull"',
  'capabilities = [1]',
  'header = "x"',
  'dial_timeout = 5',
  '[host]\na = { skip_verify = 1 }',
];
for (const text of mistyped) {
  t.test(`the type in ${JSON.stringify(text)} is refused`, async (t) => {
    t.throws(() => parse(text), { name: 'InvalidConfig', message: / must be / });
  });
}

t.test('keys match in any case, as in go-toml', async (t) => {
  like(t, parse('skip_verify = false\nSKIP_verify = true'), [{ skipVerify: true }], 'the last one applies');
  like(t, parse('SERVER = "s.example"\nSkip_Verify = true'), [{ host: 's.example', skipVerify: true }]);
});

t.test('relative and absolute paths', async (t) => {
  const [host] = parse(
    'ca = ["ca.pem", "/etc/ca.pem"]\nclient = ["c.pem", ["c.crt", "../c.key"], ["c", ""]]',
  );
  t.strictSame(host?.ca, ['/d/ca.pem', '/etc/ca.pem']);
  t.strictSame(
    host?.client,
    [
      ['/d/c.pem', ''],
      ['/d/c.crt', '/c.key'],
      ['/d/c', '/d'],
    ],
    'an empty key is the directory itself',
  );
  t.strictSame(parse('ca = []')[0]?.ca, [], 'an empty list is a setting');
  t.equal(parse('client = []')[0]?.client, undefined);
});

t.test('headers keep their names and are secrets', async (t) => {
  const [host] = parse('[header]\nX-Key = "topsecret1"\nx-list = ["a", "b"]');
  t.strictSame(
    host?.headers.map(({ name, value }) => [name, reveal(value)]),
    [
      ['X-Key', 'topsecret1'],
      ['x-list', 'a'],
      ['x-list', 'b'],
    ],
  );
  t.notMatch(JSON.stringify(host), /topsecret1/);
});

t.test('versions of containerd differ', async (t) => {
  t.throws(() => parse('server = "s.example"', '1.7.31'), { message: 'invalid `host` tree' });
  t.strictSame(names('server = "s.example"', '1.7.32'), ['https://s.example/v2']);
  t.strictSame(names('[host.b]\n[host]\na = {}', '1.6.20'), [b, a, '://'], 'every key is a host');
  const referrers = '[host.a]\ncapabilities = ["pull", "referrers"]';
  t.throws(() => parse(referrers, '2.1.4'), { message: 'unknown capability referrers' });
  t.strictSame(parse(referrers, '2.2.0')[0]?.capabilities, ['pull', 'referrers']);
  t.strictSame(parse('', '2.1.0')[0]?.capabilities, ['pull', 'resolve', 'push']);
  t.equal(parse('[host.a]\ndial_timeout = "3s"', '2.1.0')[0]?.dialTimeoutMs, 3000);
  const unknown = parse('[host.a]\ndial_timeout = 3', '2.0.5')[0];
  t.equal(unknown?.dialTimeoutMs, undefined, 'unknown keys are not checked');
});

t.test('too many hosts are refused', async (t) => {
  const text = Array.from({ length: 101 }, (_, index) => `[host.h${index}]`).join('\n');
  t.throws(() => parse(text), { name: 'InvalidConfig' });
});

t.test('deep nesting is refused', async (t) => {
  const deep = ['['.repeat(100_000), '['.repeat(5000) + ']'.repeat(5000)].map((value) => `ca = ${value}`);
  for (const text of [...deep, `${'a.'.repeat(5000)}a = ${'{a='.repeat(500)}`]) {
    t.throws(() => parse(text), {
      name: 'InvalidConfig',
      message: /is not valid TOML|byte order mark|UTF-8/,
    });
  }
});

t.test('a long table header inside a header field is refused without a deep recursion', async (t) => {
  const text = `[host."o".header.${Array(5000).fill('h').join('.')}]`;
  t.throws(() => parse(text), { name: 'InvalidConfig', message: /^the header "h" must be/ });
});
