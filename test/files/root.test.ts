import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { resolveInRoot } from '../../src/files/read.ts';

const root = t.testdir({ etc: { containerd: { 'config.toml': '' } }, var: { lib: {} } });
symlinkSync('/etc', join(root, 'absolute'));
symlinkSync('../etc/containerd', join(root, 'var/relative'));
symlinkSync('../../../etc', join(root, 'var/escape'));
symlinkSync('/../etc', join(root, 'var/above'));
symlinkSync('circle-b', join(root, 'circle-a'));
symlinkSync('circle-a', join(root, 'circle-b'));
symlinkSync('/', join(root, 'self'));
mkdirSync(join(root, 'var/lib/..v1'));
writeFileSync(join(root, 'var/lib/..v1/file'), '');
symlinkSync('..v1', join(root, 'var/lib/..data'));
symlinkSync('..data/file', join(root, 'var/lib/file'));
for (let link = 0; link < 41; link += 1) {
  symlinkSync(link === 0 ? 'etc' : `chain-${link - 1}`, join(root, `chain-${link}`));
}

const resolved: [string, string][] = [
  ['/', ''],
  ['', ''],
  ['/etc/containerd', 'etc/containerd'],
  ['etc//./containerd/', 'etc/containerd'],
  ['/etc/../var', 'var'],
  ['/absolute/containerd/config.toml', 'etc/containerd/config.toml'],
  ['/var/relative/config.toml', 'etc/containerd/config.toml'],
  ['/self/self/etc', 'etc'],
  ['/var/lib/file', 'var/lib/..v1/file'],
  ['/chain-39', 'etc'],
];

for (const [path, expected] of resolved) {
  t.test(`resolves ${path || '(nothing)'}`, async (t) => {
    t.equal(await resolveInRoot(root, path), join(root, expected));
  });
}

const refused: [string, string][] = [
  ['/..', 'escapes-root'],
  ['/etc/../..', 'escapes-root'],
  ['/var/escape', 'escapes-root'],
  ['/var/above', 'escapes-root'],
  ['/circle-a', 'unreadable'],
  ['/chain-40', 'unreadable'],
  ['/none', 'missing'],
  ['/etc/containerd/config.toml/below', 'missing'],
];

for (const [path, code] of refused) {
  t.test(`refuses ${path} as ${code}`, async (t) => {
    await t.rejects(resolveInRoot(root, path), { name: 'FileError', code, where: path });
  });
}

t.test('the root `/` changes no path', async (t) => {
  t.equal(await resolveInRoot('/', '/proc/'), '/proc');
});
