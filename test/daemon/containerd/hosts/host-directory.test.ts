import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  directoryNames,
  findHostDirectory,
  loadHostDirectory,
  maxHostsFileBytes,
} from '../../../../daemon/containerd/hosts/host-directory.ts';
import { rulesFor } from '../../../../daemon/containerd/config/rules.ts';
import { writeFiles } from '../../../support/write-files.ts';
import { like } from '../../../support/like.ts';

const rules = rulesFor();

t.test('the directory of a host is found by its name', async (t) => {
  t.strictSame(directoryNames('gcr.io'), ['gcr.io', '_default']);
  t.strictSame(directoryNames('r.example:5000'), ['r.example_5000_', 'r.example:5000', '_default']);
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
  for (const namespace of odd) t.equal(await findHostDirectory([root], namespace), undefined, namespace);
});

t.test('an absolute symbolic link is resolved inside the host root', async (t) => {
  const root = t.testdir({ certs: {}, secret: { 'hosts.toml': '' } });
  symlinkSync('/secret', join(root, 'certs/a.example'));
  symlinkSync('/etc', join(root, 'certs/b.example'));
  symlinkSync('../../../../../../../../../etc', join(root, 'certs/c.example'));
  t.equal(await findHostDirectory(['/certs'], 'a.example', root), '/certs/a.example');
  t.equal(await findHostDirectory(['/certs'], 'b.example', root), undefined, 'the host root has no /etc');
  await t.rejects(findHostDirectory(['/certs'], 'c.example', root), { code: 'escapes-root' });
});

t.test('a file in place of a directory, or a special file, fails the pull', async (t) => {
  const root = t.testdir({
    file: 'x',
    dir: { 'hosts.toml': {} },
    fifo: {},
    big: {},
    cert: { 'a.cert': 'x', 'b.crt': {} },
  });
  await t.rejects(loadHostDirectory('/file', rules, root), /is not a directory/);
  await t.rejects(loadHostDirectory('/dir', rules, root), /not a regular file/);
  execFileSync('mkfifo', [join(root, 'fifo/hosts.toml')]);
  await t.rejects(loadHostDirectory('/fifo', rules, root), /not a regular file/);
  writeFiles(root, { '/big/hosts.toml': ' '.repeat(maxHostsFileBytes + 1) });
  await t.rejects(loadHostDirectory('/big', rules, root), /larger than/);
  writeFiles(root, { '/big/hosts.toml': '#'.repeat(10 * 1024 * 1024) });
  const error = { name: 'ConfigFileError', where: '/big/hosts.toml' };
  await t.rejects(loadHostDirectory('/big', rules, root), error);
  const [host] = (await loadHostDirectory('/cert', rules, root)).hosts;
  t.strictSame(
    [host?.client, host?.ca],
    [[['/cert/a.cert', '']], undefined],
    'a directory is not a certificate',
  );
});

t.test('with a broken hosts.toml the certificate files still apply', async (t) => {
  const root = t.testdir({ a: { 'hosts.toml': 'server = [', 'ca.crt': '', '.crt': '' } });
  const { hosts, invalid } = await loadHostDirectory('/a', rules, root);
  t.strictSame(hosts[0]?.ca, ['/a/.crt', '/a/ca.crt']);
  like(t, invalid, { message: 'line 1 is not valid TOML' });
});

t.test('too many files are refused', async (t) => {
  const root = t.testdir({ a: {} });
  for (let index = 0; index < 1001; index += 1) mkdirSync(join(root, 'a', String(index)));
  await t.rejects(loadHostDirectory('/a', rules, root), /holds more than/);
});
