import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { glob, imagesTable, isCriDisabled, loadConfig } from '../../../../daemon/containerd/config/config.ts';
import { rulesFor } from '../../../../daemon/containerd/config/rules.ts';
import { NodeFiles } from '../../../../daemon/node-files.ts';
import { writeFiles } from '../../../support/write-files.ts';
import type { Files } from '../files.ts';
import { like } from '../../../support/like.ts';

const old = 'io.containerd.grpc.v1.cri';
const images = 'io.containerd.cri.v1.images';
const registry = (plugin: string, path: string) =>
  `[plugins."${plugin}".registry]\nconfig_path = "${path}"\n`;

async function load(t: Test, files: Files, version?: string) {
  const root = t.testdir();
  writeFiles(root, files);
  const rules = rulesFor(version);
  const config = await loadConfig('/etc/config.toml', rules, new NodeFiles(root));
  return { config, table: imagesTable(config, rules), disabled: isCriDisabled(config, rules) };
}

const both = registry(images, '/new') + registry(old, '/old');
const sections: [name: string, text: string, version: string | undefined, path: string | undefined][] = [
  ['no version, short name', registry('cri', '/p'), undefined, '/p'],
  ['no version, full name', registry(old, '/p'), undefined, '/p'],
  ['version 1, short name, 1.7', `version = 1\n${registry('cri', '/p')}`, '1.7.24', '/p'],
  ['version 1, full name, 1.7', `version = 1\n${registry(old, '/p')}`, '1.7.24', undefined],
  ['version 2', `version = 2\n${registry(old, '/p')}`, undefined, '/p'],
  ['version 2, 1.7', `version = 2\n${registry(old, '/p')}`, '1.7.24', '/p'],
  ['version 2, new name, 1.7', `version = 2\n${registry(images, '/p')}`, '1.7.24', undefined],
  ['no version, short name, before 2.3', registry('cri', '/p'), '2.2.9', undefined],
  ['no version, full name, before 2.3', registry(old, '/p'), '2.1.9', undefined],
  ['version 1, short name, before 2.3', `version = 1\n${registry('cri', '/p')}`, '2.0.0', undefined],
  ['no version, new name, before 2.3', registry(images, '/p'), '2.1.9', '/p'],
  ['version 2, before 2.3', `version = 2\n${registry(old, '/p')}`, '2.1.9', '/p'],
  ['version 3', `version = 3\n${registry(images, '/p')}`, '2.0.0', '/p'],
  ['version 3, old name, before 2.3', `version = 3\n${registry(old, '/p')}`, '2.2.0', undefined],
  ['version 3, old name, 2.3', `version = 3\n${registry(old, '/p')}`, '2.3.0', '/p'],
  ['version 4, old name', `version = 4\n${registry(old, '/p')}`, '2.3.0', undefined],
  ['both names, the old one wins', `version = 2\n${both}`, undefined, '/old'],
  ['version 3 in 1.6', `version = 3\n${registry(old, '/p')}`, '1.6.20', '/p'],
];
for (const [name, text, version, path] of sections) {
  t.test(`the registry table: ${name}`, async (t) => {
    const { table } = await load(t, { '/etc/config.toml': text }, version);
    t.equal((table['registry'] as Record<string, unknown> | undefined)?.['config_path'], path);
  });
}

const second = 'version = 2\n';
const two = second + registry(old, '/two');
const three = `version = 3\n${registry(images, '/three')}`;
const together: [name: string, main: string, imported: string, old: string, now: string | undefined][] = [
  ['version 1, then 2', registry('cri', '/one'), second, '/one', '/one'],
  ['version 2, then 1', second, registry('cri', '/one'), '/one', '/one'],
  ['version 2, then 3', two, three, '/three', '/three'],
  ['version 2, then 3 without it', two, 'version = 3\n', '/two', undefined],
];
for (const [name, main, imported, each, all] of together) {
  t.test(`files of several versions, since 2.3 and before: ${name}`, async (t) => {
    const files = { '/etc/config.toml': `imports = ["b.toml"]\n${main}`, '/etc/b.toml': imported };
    for (const [version, path] of [['2.3.0', each] as const, ['2.2.0', all] as const]) {
      const { table } = await load(t, files, version);
      t.equal((table['registry'] as Record<string, unknown> | undefined)?.['config_path'], path, version);
    }
  });
}

t.test('snapshot settings are migrated only with a table of runtimes', async (t) => {
  const cri = `version = 2\n[plugins."${old}".containerd]\ndiscard_unpacked_layers = true\n`;
  t.notMatch((await load(t, { '/etc/config.toml': cri })).table, { discard_unpacked_layers: true });
  const runtimes = `${cri}[plugins."${old}".containerd.runtimes.runc]\n`;
  like(t, (await load(t, { '/etc/config.toml': runtimes })).table, { discard_unpacked_layers: true });
});

t.test('imports are read', async (t) => {
  const files = {
    '/etc/config.toml':
      'version = 2\nroot = "/a"\nimports = ["conf.d/*.toml", "./more.toml", "/x/../abs.toml", "config.toml"]\n',
    '/etc/conf.d/20.toml': `version = 2\nimports = ["/deep.toml"]\n${registry(old, '/20')}`,
    '/etc/conf.d/.10.toml': `version = 2\nroot = "/b"\n${registry(old, '/10')}`,
    '/etc/conf.d/30.txt': 'broken [',
    '/etc/more.toml': 'version = 2\nroot = ""\nimports = ["/etc/config.toml"]\n',
    '/abs.toml': 'version = 2\ndisabled_plugins = ["io.containerd.a.v1.b"]\n',
    '/deep.toml': `version = 2\n${registry(old, '/deep')}`,
  };
  const { config, table } = await load(t, files);
  const first = ['/etc/config.toml', '/etc/conf.d/.10.toml', '/etc/conf.d/20.toml', '/etc/more.toml'];
  t.strictSame(config.files, [...first, '/abs.toml', '/deep.toml'], 'breadth first, each once');
  t.strictSame(config.disabledPlugins, ['io.containerd.a.v1.b']);
  like(t, table, { registry: { config_path: '/deep' } });
});

t.test('imported files are merged', async (t) => {
  const files = {
    '/etc/config.toml': `version = 2\nimports = ["b.toml"]\n[plugins."${old}".registry]\nconfig_path = "/a"\n[plugins."${old}".registry.mirrors.x]\nendpoint = ["1", "2"]\n`,
    '/etc/b.toml': `version = 2\n[plugins."${old}".registry]\nconfig_path = ""\n[plugins."${old}".registry.mirrors.x]\nendpoint = ["3"]\n[plugins."${old}".registry.mirrors.y]\n`,
  };
  like(t, (await load(t, files)).table, {
    registry: { config_path: '', mirrors: { x: { endpoint: ['3'] }, y: {} } },
  });
  const dropIn = { ...files, '/etc/b.toml': `version = 2\n[plugins."${old}".cni]\nbin_dir = "/x"\n` };
  const before = (await load(t, dropIn, '1.7.24')).table;
  t.notOk('registry' in before, 'until 1.7 a drop-in replaces the whole plugin');
  like(t, (await load(t, dropIn, '2.0.0')).table, { registry: { config_path: '/a' } });
});

t.test('relative patterns of 1.6 start at the root', async (t) => {
  const files = { '/etc/config.toml': 'imports = ["d/*.toml"]', '/etc/d/a.toml': '', '/d/b.toml': '' };
  t.strictSame((await load(t, files, '1.6.20')).config.files, ['/etc/config.toml', '/d/b.toml']);
  t.strictSame((await load(t, files, '1.7.24')).config.files, ['/etc/config.toml', '/etc/d/a.toml']);
});

const broken: [name: string, text: string, message: RegExp, version?: string][] = [
  ['an import that is missing', 'imports = ["gone.toml"]', /gone\.toml: there is no such file/],
  ['an invalid pattern', 'imports = ["[*.toml"]', /syntax error in pattern/],
  ['invalid TOML', 'a = "topsecret', /^\/etc\/config\.toml: line 1 is not valid TOML$/],
  ['a byte order mark', '\uFEFFversion = 2', /byte order mark/],
  ['a version of the future', 'version = 5', /newer than 4/],
  ['version 4 in 2.2', 'version = 4', /newer than 3/, '2.2.0'],
  ['version 3 in 1.7', 'version = 3', /newer than 2/, '1.7.24'],
  ['a version in quotes', 'version = "2"', /version must be an integer/],
  ['a negative version', 'version = -1', /must not be negative/],
  ['imports that are a string', 'imports = "a"', /imports must be a list of strings/],
  ['a plugin that is a number', '[plugins]\ncri = 1', /plugins\.cri must be a table/],
  ['short names in version 2', 'version = 2\ndisabled_plugins = ["cri"]', /full name/],
  ['short plugins in version 2 of 1.7', 'version = 2\n[plugins.cri]', /full name/, '1.7.24'],
  ['a huge file', `# ${'x'.repeat(1_048_576)}`, /larger than/],
];
for (const [name, text, message, version] of broken) {
  t.test(`containerd does not start with ${name}`, async (t) => {
    const refusal = { name: 'ConfigFileError', where: /^\/etc\//, message };
    await t.rejects(load(t, { '/etc/config.toml': text }, version), refusal);
  });
}

t.test('a chain of imports is limited', async (t) => {
  const files: Record<string, string> = {};
  for (let index = 0; index < 250; index += 1)
    files[`/etc/${index}.toml`] = `imports = ["${index + 1}.toml"]`;
  files['/etc/config.toml'] = 'imports = ["0.toml"]';
  await t.rejects(load(t, files), /imports more than 200 files/);
});

t.test('symbolic links of imports stay in the host root', async (t) => {
  const root = t.testdir();
  writeFiles(root, {
    '/etc/config.toml': 'imports = ["link.toml", "up.toml"]',
    '/real/a.toml': 'root = "/real"',
  });
  symlinkSync('/real/a.toml', join(root, 'etc/link.toml'));
  symlinkSync('../../../../../../../../../../etc/passwd', join(root, 'etc/up.toml'));
  await t.rejects(loadConfig('/etc/config.toml', rulesFor(), new NodeFiles(root)), /up\.toml: leads out of/);
});

t.test('a disabled CRI plugin is detected', async (t) => {
  const disabled = async (text: string, version?: string) =>
    (await load(t, { '/etc/config.toml': text }, version)).disabled;
  t.equal(await disabled('disabled_plugins = ["cri"]'), true);
  t.equal(await disabled('disabled_plugins = ["cri"]', '1.7.24'), true);
  t.equal(await disabled(`version = 3\ndisabled_plugins = ["${images}"]`), true);
  t.equal(await disabled('version = 2'), false);
});

const inD = ['/d/.c.toml', '/d/[x].toml', '/d/a.toml', '/d/ab.toml', '/d/b.toml', '/d/é☃.toml'];
const names = [...inD, '/e/a.toml', '/e/d/a.toml'];

const cases: [pattern: string, found: string[]][] = [
  ['/d/*.toml', inD],
  ['/d/?.toml', ['/d/a.toml', '/d/b.toml']],
  ['/d/??.toml', ['/d/.c.toml', '/d/ab.toml', '/d/é☃.toml']],
  ['/d/[ab]*', ['/d/a.toml', '/d/ab.toml', '/d/b.toml']],
  ['/d/[^ab]*', ['/d/.c.toml', '/d/[x].toml', '/d/é☃.toml']],
  ['/d/[a-a].*', ['/d/a.toml']],
  ['/d/\\[x\\]*', ['/d/[x].toml']],
  ['/*/a.toml', ['/d/a.toml', '/e/a.toml']],
  ['/e/*/*.toml', ['/e/d/a.toml']],
  ['/d/***.toml', inD],
  ['/none/*', []],
  ['/d/a.toml/*', []],
  ['/d/(a|b)*', []],
  ['/d/[\\ab].toml', ['/d/a.toml', '/d/b.toml']],
  ['/d/a', []],
];
for (const [pattern, found] of cases) {
  t.test(`the pattern ${pattern}`, async (t) => {
    const root = t.testdir();
    writeFiles(root, Object.fromEntries(names.map((name) => [name, ''])));
    t.strictSame(await glob(pattern, new NodeFiles(root)), found);
  });
}

t.test('malformed patterns are refused', async (t) => {
  const root = t.testdir({ d: { a: '' } });
  for (const pattern of ['/d/[', '/d/[a', '/d/[]', '/d/[]a]', '/d/[-a]', '/d/[a-]', '/d/[b-a]', '/d/\\']) {
    const refusal = { name: 'InvalidConfig', message: /syntax error/ };
    await t.rejects(glob(pattern, new NodeFiles(root)), refusal, pattern);
  }
});

t.test('too many matches are refused', async (t) => {
  const root = t.testdir();
  writeFiles(root, Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`/d/${index}`, ''])));
  await t.rejects(glob('/d/*', new NodeFiles(root)), /matches more than 200 files/);
  t.equal((await glob('/d/[^0]*', new NodeFiles(root))).length, 200);
});
