import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parseHostsFile } from '../../../../daemon/containerd/hosts/hosts-file.ts';
import { rulesFor } from '../../../../daemon/containerd/config/rules.ts';
import { reveal } from '../../../../src/telemetry/secret.ts';
import { like } from '../../../support/like.ts';
import {
  directoryNames,
  findHostDirectory,
  loadHostDirectories,
  loadHostDirectory,
  maxHostsFileBytes,
} from '../../../../daemon/containerd/hosts/host-directory.ts';
import { NodeFiles } from '../../../../daemon/node-files.ts';
import { writeFiles } from '../../../support/write-files.ts';
import { effectiveHosts, isLocalhost } from '../../../../daemon/containerd/endpoint.ts';
import { splitHostPort } from '../../../../src/names/host-port.ts';

const rules = rulesFor();
const parse = (text: string, version?: string) =>
  parseHostsFile('/d', text, version === undefined ? rules : rulesFor(version));
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
  ['a number as ca', 'ca = 3', /^ca must be/],
  ['a number in ca', 'ca = ["a", 3]', /^ca must be/],
  ['a boolean as client', 'client = true', /^client must be/],
  ['a number in client', 'client = [3]', /^client must be/],
  ['three in a pair', 'client = [["a", "b", "c"]]', /^client must be/],
  ['one in a pair', 'client = [["a"]]', /^client must be/],
  ['a number as header', '[header]\nx-key = 12345678', /^the header "x-key" must be a string or a list of/],
  ['a number in a header', '[header]\nx = ["a", 12345678]', /^the header "x" must be/],
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
  '[[host.a]]',
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
  const client = 'client = ["c.pem", ["c.crt", "../c.key"], ["c", ""]]';
  const [host] = parse(`ca = ["ca.pem", "/etc/ca.pem"]\n${client}`);
  t.strictSame(host?.ca, ['/d/ca.pem', '/etc/ca.pem']);
  const [alone, pair, ...more] = host?.client ?? [];
  t.strictSame(
    [alone, pair],
    [
      ['/d/c.pem', ''],
      ['/d/c.crt', '/c.key'],
    ],
  );
  t.strictSame(more, [['/d/c', '/d']], 'an empty key is the directory itself');
  t.strictSame(parse('ca = []')[0]?.ca, [], 'an empty list is a setting');
  t.equal(parse('client = []')[0]?.client, undefined);
});

t.test('headers keep their names and are secrets', async (t) => {
  const [host] = parse('[header]\nX-Key = "topsecret1"\nx-list = ["a", "b"]');
  const headers = host?.headers.map(({ name, value }) => `${name}: ${reveal(value)}`);
  t.strictSame(headers, ['X-Key: topsecret1', 'x-list: a', 'x-list: b']);
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
    t.throws(() => parse(text), { name: 'InvalidConfig', message: /is not valid TOML/ });
  }
});

t.test('a long table header inside a header field is refused without a deep recursion', async (t) => {
  const text = `[host."o".header.${Array(5000).fill('h').join('.')}]`;
  t.throws(() => parse(text), { name: 'InvalidConfig', message: /^the header "h" must be/ });
});

const load = (dir: string, root: string) => loadHostDirectory(dir, rules, new NodeFiles(root));
const find = async (namespace: string, root: string, ...dirs: string[]) => {
  const directories = await loadHostDirectories(dirs, rules, new NodeFiles(root), new Map());
  return findHostDirectory(directories, dirs, namespace)?.dir;
};

t.test('the directory of a host is found by its name', async (t) => {
  t.strictSame(directoryNames('gcr.io'), ['gcr.io', '_default']);
  t.strictSame(directoryNames('r.example:5000'), ['r.example_5000_', 'r.example:5000', '_default']);
  t.strictSame(directoryNames('r:1'), ['r_1_', 'r:1', '_default']);
  t.strictSame(directoryNames('[::1]:5000'), ['[::1]_5000_', '[::1]:5000', '_default']);
  t.strictSame(directoryNames('UPPER.example'), ['UPPER.example', '_default']);
});

t.test('a name that is not a domain uses no directory, not even _default', async (t) => {
  const names = '. .. ../x a/b %2e%2e a_b.c r.example_5000_ _default a..b -a a:b [..]'.split(' ');
  const odd = [...names, '', 'a\0', 'a b', `${'a.'.repeat(200)}a`];
  for (const namespace of odd) t.strictSame(directoryNames(namespace), [], namespace);
  const root = t.testdir({ _default: {}, 'hosts.toml': '' });
  for (const namespace of odd) t.equal(await find(namespace, root, '/'), undefined, namespace);
});

t.test('a root inside another one is no directory of a host', async (t) => {
  const root = t.testdir({ etc: { certs: { 'a.example': {} } } });
  t.equal(await find('a.example', root, '/etc', '/etc/certs'), '/etc/certs/a.example');
  t.equal(await find('b.example', root, '/etc', '/etc/certs'), undefined);
});

t.test('an absolute symbolic link is resolved inside the host root', async (t) => {
  const root = t.testdir({ certs: {}, secret: { 'hosts.toml': '' } });
  symlinkSync('/secret', join(root, 'certs/a.example'));
  symlinkSync('/etc', join(root, 'certs/b.example'));
  symlinkSync('../../../../../../../../../etc', join(root, 'certs/c.example'));
  t.equal(await find('a.example', root, '/certs'), '/certs/a.example');
  t.equal(await find('b.example', root, '/certs'), undefined, 'the host root has no /etc');
  await t.rejects(find('c.example', root, '/certs'), /leads out of/);
});

t.test('a file in place of a directory, or a special file, fails the pull', async (t) => {
  const cert = { 'a.cert': 'x', 'b.crt': {} };
  const root = t.testdir({ file: 'x', dir: { 'hosts.toml': {} }, fifo: {}, big: {}, cert });
  await t.rejects(load('/file', root), /is not a directory/);
  await t.rejects(load('/dir', root), /not a regular file/);
  execFileSync('mkfifo', [join(root, 'fifo/hosts.toml')]);
  await t.rejects(load('/fifo', root), /not a regular file/);
  writeFiles(root, { '/big/hosts.toml': ' '.repeat(maxHostsFileBytes + 1) });
  const error = { name: 'ConfigFileError', where: '/big/hosts.toml', message: /larger than/ };
  await t.rejects(load('/big', root), error);
  const [host] = (await load('/cert', root)).hosts;
  t.strictSame(host?.client, [['/cert/a.cert', '']]);
  t.equal(host?.ca, undefined, 'a directory is not a certificate');
});

t.test('with a broken hosts.toml the certificate files still apply', async (t) => {
  const root = t.testdir({ a: { 'hosts.toml': 'server = [', 'ca.crt': '', '.crt': '' } });
  const { hosts, invalid } = await load('/a', root);
  t.strictSame(hosts[0]?.ca, ['/a/.crt', '/a/ca.crt']);
  writeFiles(root, { '/a/hosts.toml': ' ' });
  t.equal((await load('/a', root)).hosts[0]?.ca, undefined, 'with a valid one they do not');
  like(t, invalid, { message: 'line 1 is not valid TOML' });
});

t.test('too many files are refused', async (t) => {
  const root = t.testdir({ a: {} });
  for (let index = 0; index < 1001; index += 1) mkdirSync(join(root, 'a', String(index)));
  await t.rejects(load('/a', root), /holds more than/);
});

t.test('localhost and loopback addresses are local', async (t) => {
  const local = 'localhost localhost:5000 127.0.0.1 127.9.9.9:1 ::1 [::1]:5000 [::ffff:127.0.0.1]:1';
  const other =
    '[::1] foo.localhost 0.0.0.0 10.0.0.1 127.0.0.1.example 2130706433 0x7f.1 [64:ff9b::7f00:1]:1';
  for (const host of local.split(' ')) t.equal(isLocalhost(host), true, host);
  for (const host of ['', ...other.split(' ')]) t.equal(isLocalhost(host), false, host);
  for (const [version, scheme] of Object.entries({ '1.6.20': 'http', '1.7.24': 'https' }))
    like(t, effectiveHosts(undefined, 'localhost', rulesFor(version)), [{ scheme, skipVerify: true }]);
  like(t, effectiveHosts(undefined, 'localhost:5000', rulesFor('1.7.24')), [
    { scheme: 'https', skipVerify: true },
  ]);
});

t.test('host and port are split as in containerd', async (t) => {
  t.strictSame(splitHostPort('a:1'), { host: 'a', port: '1' });
  t.strictSame(splitHostPort('[::1]:1'), { host: '::1', port: '1' });
  t.strictSame(splitHostPort('a:'), { host: 'a', port: '' });
  for (const none of ['a', '::1', '[::1]', 'a:1:2', '[a:1', ''])
    t.equal(splitHostPort(none), undefined, none);
});
