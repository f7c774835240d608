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

async function source(t: Test, dir: string, root?: string) {
  const made = await createRegistryTomlSource({ dir, root, ...manualRefresh });
  t.teardown(() => made.close());
  return {
    made,
    users: async (repository: string) =>
      (await made.lookup(repository)).map(({ key, credential }) => `${key} ${credential.username}`),
  };
}

const messages = (made: Awaited<ReturnType<typeof source>>['made'], dir: string) =>
  made.problems().map(({ origin, message }) => `${origin}: ${message}`.replaceAll(dir, ''));

t.test('user and secret are read', async (t) => {
  const { username, password } = parseRegistryToml('# ours\nuser = "me"\nsecret = \'pass"word\'\nnote = 1\n');
  t.equal(username, 'me');
  t.equal(reveal(password), 'pass"word');
});

const bad: [string, string, string][] = [
  ['nothing', '', 'user must be a string, as in user = "NAME"'],
  ['no secret', 'user = "u"', 'secret must be a string, as in secret = "PASSWORD"'],
  ['an empty user', 'user = ""\nsecret = "s"', 'user must be a string, as in user = "NAME"'],
  ['an empty secret', 'user = "u"\nsecret = ""', 'secret must be a string, as in secret = "PASSWORD"'],
  ['a number', 'user = "u"\nsecret = 12345678', 'secret must be a string, as in secret = "PASSWORD"'],
  ['in a table', '[auth]\nuser = "u"\nsecret = "s"', 'user must be a string, as in user = "NAME"'],
  ['an unterminated string', 'user = "u"\nsecret = "hunter22', 'is not valid TOML (line 2)'],
  ['a key twice', 'user = "u"\nsecret = "s"\nsecret = "hunter22"', 'is not valid TOML (line 3)'],
  ['too deep', `x = ${'['.repeat(5000)}`, 'is not valid TOML (line 1)'],
];
for (const [name, text, message] of bad) {
  t.test(`${name} is refused`, async (t) => {
    t.throws(() => parseRegistryToml(text), { name: 'RegistryTomlError', message });
  });
}

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
  const dir = t.testdir({
    'docker.io.toml': toml('hub'),
    'index.docker.io.toml': toml('classic'),
    'registry.corp:5000.toml': toml('port'),
    'registry.corp_5000_.toml': toml('written-port'),
    'other.txt': toml('no'),
    '.toml': toml('hidden'),
  });
  const { made, users } = await source(t, dir);
  t.strictSame(await users('docker.io/library/nginx'), ['docker.io hub']);
  t.strictSame(await users('registry.corp:5000/app'), [
    'registry.corp:5000 port',
    'registry.corp:5000 written-port',
  ]);
  t.strictSame(await users('registry.corp/app'), []);
  t.strictSame(messages(made, dir), ['/other.txt: is not read; it must be named other.toml']);
  rmSync(join(dir, 'docker.io.toml'));
  await made.refresh();
  t.strictSame(await users('docker.io/library/nginx'), ['index.docker.io classic']);
});

t.test('a file name that matches no image is a problem, with a suggestion', async (t) => {
  const dir = t.testdir({
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
  const { made, users } = await source(t, dir);
  t.strictSame(messages(made, dir), [
    '/127.0.0.1_5000.toml: 127.0.0.1_5000.toml is the registry 127.0.0.1_5000; with a port it must be named 127.0.0.1_5000_.toml',
    '/b.corp__443_.toml: b.corp__443_.toml is the registry b.corp_:443; with a port it must be named b.corp_443_.toml',
    '/d.corp.tml: is not read; it must be named d.corp.toml',
    '/e.corp_5000: is not read; it must be named e.corp_5000_.toml',
    '/f.corp.json: is not read; it must be named f.corp.toml',
    '/registry.toml: no image names a registry registry: it has neither a dot nor a port',
  ]);
  t.strictSame(await users('127.0.0.1:5000/app'), []);
  t.strictSame(await users('127.0.0.1_5000/app'), ['127.0.0.1_5000 port'], 'the written name is used');
  for (const { where, state } of await made.describe()) {
    if (where.endsWith('.tml')) t.equal(state, 'left-out');
  }
});

t.test('a required file that is missing is a problem', async (t) => {
  const dir = t.testdir({ 'a.io.toml': toml('a') });
  const expected = ['a.io.toml', 'b.io.toml', '127.0.0.1_5000_.toml'];
  const made = await createRegistryTomlSource({ dir, expected, ...manualRefresh });
  t.teardown(() => made.close());
  const advice = 'there is no such file; check that its Secret exists and has the key';
  t.strictSame(messages(made, dir), [
    `/b.io.toml: ${advice} b.io.toml`,
    `/127.0.0.1_5000_.toml: ${advice} 127.0.0.1_5000_.toml, in which a port is written _5000_`,
  ]);
  for (const name of expected) writeFileSync(join(dir, name), toml('now'));
  await made.refresh();
  t.strictSame(made.problems(), []);
});

t.test('a malformed file is skipped, and reported without its content', async (t) => {
  const dir = t.testdir({
    'good.io.toml': toml('good'),
    'bad.io.toml': 'secret = "hunter22',
    'dir.io.toml': {},
    'bad name.toml': toml('x'),
    'long.io.toml': `${toml('x')}#${'x'.repeat(65_536)}`,
  });
  writeFileSync(join(dir, 'latin.io.toml'), Buffer.from('user = "\xe9"', 'latin1'));
  const { made, users } = await source(t, dir);
  t.strictSame(await users('good.io/a'), ['good.io good']);
  const problems = made
    .problems()
    .map(({ origin, message }) => `${origin.slice(dir.length + 1)}: ${message}`);
  like(t, problems, [
    /^bad name\.toml: its name is not that of a registry$/,
    /^bad\.io\.toml: is not valid TOML \(line 1\)$/,
    /^dir\.io\.toml: .*is not a regular file$/,
    /^latin\.io\.toml: .*is not UTF-8 text$/,
    /^long\.io\.toml: .*is larger than 65536 bytes/,
  ]);
  t.notMatch(problems.join(), /hunter22/);
});

t.test('a file that breaks keeps its last good content, a removed file does not', async (t) => {
  const dir = t.testdir({ 'a.io.toml': toml('a'), 'b.io.toml': toml('b') });
  const { made, users } = await source(t, dir);
  const before = made.fingerprint();
  writeFileSync(join(dir, 'a.io.toml'), 'user = ');
  await made.refresh();
  t.strictSame(await users('a.io/x'), ['a.io a']);
  t.equal(made.fingerprint(), before);
  like(t, made.problems(), [{ message: 'is not valid TOML (line 1); its last good content stays in force' }]);
  rmSync(join(dir, 'a.io.toml'));
  await made.refresh();
  t.strictSame(await users('a.io/x'), []);
  t.strictSame(await users('b.io/x'), ['b.io b']);
  t.strictSame(made.problems(), []);
  t.not(made.fingerprint(), before);
});

t.test('a directory that cannot be read is a problem with its path', async (t) => {
  const parent = t.testdir({ lib: {} });
  symlinkSync('../../..', join(parent, 'lib/out'));
  const outside = await source(t, '/lib/out', parent);
  t.strictSame(await outside.users('a.io/x'), []);
  like(t, outside.made.problems(), [
    { source: 'registry-toml', origin: '/lib/out', message: /leads out of/ },
  ]);
});
