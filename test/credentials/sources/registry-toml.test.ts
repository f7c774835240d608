import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  createRegistryTomlSource,
  parseRegistryToml,
  registryKey,
  RegistryTomlError,
} from '../../../src/credentials/sources/registry-toml.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';
import { like } from '../../support/like.ts';

const toml = (user: string) => `user = "${user}"\nsecret = "hunter22"\n`;

/** A source of these files. */
async function setUp(t: Test, files: Parameters<Test['testdir']>[0], expected?: readonly string[]) {
  const dir = t.testdir(files);
  const source = await createRegistryTomlSource({ dir, expected, ...manualRefresh });
  t.teardown(() => source.close());
  return {
    dir,
    source,
    users: async (repository: string) =>
      (await source.lookup(repository)).map(({ key, credential }) => `${key} ${credential.username}`),
    messages: () =>
      source.problems().map(({ origin, message }) => `${origin}: ${message}`.replaceAll(`${dir}/`, '')),
    write: (name: string, text: string | Buffer) => writeFileSync(join(dir, name), text),
  };
}

t.test('user and secret are read', async (t) => {
  const { username, password } = parseRegistryToml('# ours\nuser = "me"\nsecret = \'pass"word\'\nnote = 1\n');
  t.equal(username, 'me');
  t.equal(reveal(password), 'pass"word');
});

const noUser = 'user must be a string, as in user = "NAME"';
const noSecret = 'secret must be a string, as in secret = "PASSWORD"';
const bad: [string, string, string][] = [
  ['nothing', '', noUser],
  ['no secret', 'user = "u"', noSecret],
  ['an empty user', 'user = ""\nsecret = "s"', noUser],
  ['an empty secret', 'user = "u"\nsecret = ""', noSecret],
  ['a number', 'user = "u"\nsecret = 12345678', noSecret],
  ['in a table', '[auth]\nuser = "u"\nsecret = "s"', noUser],
  ['an unterminated string', 'user = "u"\nsecret = "hunter22', 'is not valid TOML (line 2)'],
  ['a key twice', 'user = "u"\nsecret = "s"\nsecret = "hunter22"', 'is not valid TOML (line 3)'],
  ['too deep', `x = ${'['.repeat(5000)}`, 'is not valid TOML (line 1)'],
];
t.test('other content is refused', async (t) => {
  for (const [name, text, message] of bad)
    t.throws(() => parseRegistryToml(text), { name: 'RegistryTomlError', message }, name);
});

t.test('the key is the file name', async (t) => {
  const names: [string, string | undefined][] = [
    ['docker.io.toml', 'docker.io'],
    ['registry.corp:5000.toml', 'registry.corp:5000'],
    ['registry.corp_5000_.toml', 'registry.corp:5000'],
    ['my_registry.toml', 'my_registry'],
    ['a_b_.toml', 'a_b_'],
    ['*.corp.example.toml', '*.corp.example'],
    ['registry.corp:x.toml', undefined],
    ['?.toml', undefined],
    ['a b.toml', undefined],
  ];
  for (const [name, expected] of names) {
    if (expected === undefined) t.throws(() => registryKey(name), RegistryTomlError, name);
    else t.equal(registryKey(name), expected);
  }
});

t.test('a file matches its registry, Docker Hub by both names', async (t) => {
  const { dir, source, users, messages } = await setUp(t, {
    'docker.io.toml': toml('hub'),
    'index.docker.io.toml': toml('classic'),
    'registry.corp:5000.toml': toml('port'),
    'registry.corp_5000_.toml': toml('written-port'),
    'other.txt': toml('no'),
    '.toml': toml('hidden'),
  });
  t.strictSame(await users('docker.io/library/nginx'), ['docker.io hub']);
  t.strictSame(await users('registry.corp:5000/app'), [
    'registry.corp:5000 port',
    'registry.corp:5000 written-port',
  ]);
  t.strictSame(await users('registry.corp/app'), []);
  t.strictSame(messages(), ['other.txt: is not read; it must be named other.toml']);
  rmSync(join(dir, 'docker.io.toml'));
  await source.refresh();
  t.strictSame(await users('docker.io/library/nginx'), ['index.docker.io classic']);
});

t.test('a file name that matches no image is a problem, with a suggestion', async (t) => {
  const { source, users, messages } = await setUp(t, {
    '127.0.0.1_5000.toml': toml('port'),
    'b.corp__443_.toml': toml('underscore'),
    'c.corp_5000_.toml': toml('right'),
    'd.corp.tml': toml('ending'),
    'e.corp_5000': toml('no ending'),
    'f.corp.json': toml('JSON'),
    'localhost.toml': toml('right'),
    'my_mirror.corp.toml': toml('right: containerd connects to such hosts'),
    'registry.toml': toml('no dot'),
    '*.toml': toml('right'),
    'notes.txt': 'user and secret of a.io',
    'ca.crt': 'certificate',
    '.dockerconfigjson': toml('hidden'),
  });
  t.strictSame(messages(), [
    '127.0.0.1_5000.toml: 127.0.0.1_5000.toml is the registry 127.0.0.1_5000; with a port it must be named 127.0.0.1_5000_.toml',
    'b.corp__443_.toml: b.corp__443_.toml is the registry b.corp_:443; with a port it must be named b.corp_443_.toml',
    'd.corp.tml: is not read; it must be named d.corp.toml',
    'e.corp_5000: is not read; it must be named e.corp_5000_.toml',
    'f.corp.json: is not read; it must be named f.corp.toml',
    'registry.toml: no image names a registry registry: it has neither a dot nor a port',
  ]);
  t.strictSame(await users('127.0.0.1:5000/app'), []);
  t.strictSame(await users('127.0.0.1_5000/app'), ['127.0.0.1_5000 port'], 'the written name is used');
  for (const { where, state } of await source.describe()) {
    if (where.endsWith('.tml')) t.equal(state, 'left-out');
  }
});

t.test('a required file that is missing is a problem', async (t) => {
  const expected = ['a.io.toml', 'b.io.toml', '127.0.0.1_5000_.toml'];
  const { source, messages, write } = await setUp(t, { 'a.io.toml': toml('a') }, expected);
  const advice = 'there is no such file; check that its Secret exists and has the key';
  t.strictSame(messages(), [
    `b.io.toml: ${advice} b.io.toml`,
    `127.0.0.1_5000_.toml: ${advice} 127.0.0.1_5000_.toml, in which a port is written _5000_`,
  ]);
  for (const name of expected) write(name, toml('now'));
  await source.refresh();
  t.strictSame(source.problems(), []);
});

t.test('a malformed file is skipped, and reported without its content', async (t) => {
  const { source, users, messages, write } = await setUp(t, {
    'good.io.toml': toml('good'),
    'bad.io.toml': 'secret = "hunter22',
    'dir.io.toml': {},
    'bad name.toml': toml('x'),
    'long.io.toml': `${toml('x')}#${'x'.repeat(65_536)}`,
  });
  write('latin.io.toml', Buffer.from('user = "\xe9"', 'latin1'));
  await source.refresh();
  t.strictSame(await users('good.io/a'), ['good.io good']);
  like(t, messages(), [
    /^bad name\.toml: its name is not that of a registry$/,
    /^bad\.io\.toml: is not valid TOML \(line 1\)$/,
    /^dir\.io\.toml: .*is not a regular file$/,
    /^latin\.io\.toml: .*is not UTF-8 text$/,
    /^long\.io\.toml: .*is larger than 65536 bytes/,
  ]);
  t.notMatch(messages().join(), /hunter22/);
});

t.test('a file that breaks keeps its last good content, a removed file does not', async (t) => {
  const { dir, source, users, messages, write } = await setUp(t, {
    'a.io.toml': toml('a'),
    'b.io.toml': toml('b'),
  });
  const before = source.fingerprint();
  write('a.io.toml', 'user = ');
  await source.refresh();
  t.strictSame(await users('a.io/x'), ['a.io a']);
  t.equal(source.fingerprint(), before);
  t.strictSame(messages(), ['a.io.toml: is not valid TOML (line 1); its last good content stays in force']);
  rmSync(join(dir, 'a.io.toml'));
  await source.refresh();
  t.strictSame(await users('a.io/x'), []);
  t.strictSame(await users('b.io/x'), ['b.io b']);
  t.strictSame(source.problems(), []);
  t.not(source.fingerprint(), before);
});

t.test('a directory that cannot be read is a problem with its path', async (t) => {
  const parent = t.testdir({ lib: {} });
  symlinkSync('../../..', join(parent, 'lib/out'));
  const source = await createRegistryTomlSource({ dir: '/lib/out', root: parent, ...manualRefresh });
  t.teardown(() => source.close());
  t.strictSame(await source.lookup('a.io/x'), []);
  like(t, source.problems(), [{ source: 'registry-toml', origin: '/lib/out', message: /leads out of/ }]);
});
