import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  directoryNames,
  findHostDirectory,
  loadHostDirectories,
  loadHostDirectory,
  maxHostsFileBytes,
} from '../../../../daemon/containerd/hosts/host-directory.ts';
import { NodeFiles } from '../../../../daemon/node-files.ts';
import { rulesFor } from '../../../../daemon/containerd/config/rules.ts';
import { writeFiles } from '../../../support/write-files.ts';
import { like } from '../../../support/like.ts';

const rules = rulesFor();
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
  const odd = [
    '',
    '.',
    '..',
    '../x',
    'a/b',
    '%2e%2e',
    'a_b.c',
    'r.example_5000_',
    '_default',
    'a..b',
    '-a',
    'a\0',
    'a b',
    `${'a.'.repeat(200)}a`,
    'a:b',
    '[..]',
  ];
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
  const root = t.testdir({
    file: 'x',
    dir: { 'hosts.toml': {} },
    fifo: {},
    big: {},
    cert: { 'a.cert': 'x', 'b.crt': {} },
  });
  await t.rejects(load('/file', root), /is not a directory/);
  await t.rejects(load('/dir', root), /not a regular file/);
  execFileSync('mkfifo', [join(root, 'fifo/hosts.toml')]);
  await t.rejects(load('/fifo', root), /not a regular file/);
  writeFiles(root, { '/big/hosts.toml': ' '.repeat(maxHostsFileBytes + 1) });
  await t.rejects(load('/big', root), /larger than/);
  writeFiles(root, { '/big/hosts.toml': '#'.repeat(10 * 1024 * 1024) });
  const error = { name: 'ConfigFileError', where: '/big/hosts.toml' };
  await t.rejects(load('/big', root), error);
  const [host] = (await load('/cert', root)).hosts;
  t.strictSame(
    [host?.client, host?.ca],
    [[['/cert/a.cert', '']], undefined],
    'a directory is not a certificate',
  );
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
