import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { checkBinary } from '../../../../daemon/kubelet/run/binary.ts';
import { writePlugin } from '../support.ts';

function node(t: Test) {
  const hostRoot = t.testdir({ opt: { bin: {}, real: {} } });
  const bin = join(hostRoot, 'opt/bin');
  for (const dir of ['', 'opt', 'opt/bin', 'opt/real']) chmodSync(join(hostRoot, dir), 0o755);
  writePlugin(join(bin, 'p'), '');
  return {
    hostRoot,
    bin,
    check: (name = 'p', binDir = '/opt/bin') => checkBinary(name, { hostRoot, binDir }),
  };
}

t.test('a program runs if only root can write it', async (t) => {
  const { hostRoot, bin, check } = node(t);
  t.equal(await check(), '/opt/bin/p');
  t.equal(await check('p', 'opt/bin/'), '/opt/bin/p');
  writePlugin(join(hostRoot, 'opt/real/tool'), '');
  symlinkSync('/opt/real/tool', join(bin, 'linked'));
  t.equal(await check('linked'), '/opt/bin/linked', 'with links not resolved, as in the kubelet');
});

t.test('a name with a slash is refused', async (t) => {
  const { check } = node(t);
  for (const name of ['', '.', '..', '../p', '/opt/bin/p', 'a/b', 'p\0']) {
    await t.rejects(check(name), { code: 'unsafe', message: /single part of a path/ }, JSON.stringify(name));
  }
});

t.test('missing and non-executable programs are refused', async (t) => {
  const { bin, check } = node(t);
  mkdirSync(join(bin, 'dir'), { mode: 0o755 });
  writeFileSync(join(bin, 'text'), '', { mode: 0o644 });
  symlinkSync('nowhere', join(bin, 'dangling'));
  const cases: [string, { code: string; message?: string | RegExp }][] = [
    [
      'none',
      {
        code: 'missing',
        message: 'plugin binary executable /opt/bin/none did not exist; check kubeletConfig.binDir',
      },
    ],
    ['dangling', { code: 'missing' }],
    ['dir', { code: 'not-executable', message: /not a regular file/ }],
    ['text', { code: 'not-executable', message: /chmod 0755/ }],
  ];
  for (const [name, error] of cases) await t.rejects(check(name), error);
});

t.test('symbolic links out of the host root are refused', async (t) => {
  const { bin, check } = node(t);
  symlinkSync('../../../../bin/sh', join(bin, 'out'));
  await t.rejects(check('out'), { code: 'unsafe', message: /leads out of/ });
  symlinkSync('/bin/sh', join(bin, 'absolute'));
  // The link leads to the node’s /bin/sh, which does not exist here.
  await t.rejects(check('absolute'), { code: 'missing' });
});

t.test('programs that other users can write are refused', async (t) => {
  const { hostRoot, bin, check } = node(t);
  writePlugin(join(hostRoot, 'opt/real/tool'), '');
  symlinkSync('/opt/real/tool', join(bin, 'linked'));
  const paths: [string, string][] = [
    ['/opt/bin/p', 'p'],
    ['/opt/bin', 'p'],
    ['/opt', 'p'],
    ['/', 'p'],
    ['/opt/real', 'linked'],
    ['/opt/real/tool', 'linked'],
  ];
  for (const [path, name] of paths) {
    for (const mode of [0o757, 0o775, 0o777]) {
      chmodSync(join(hostRoot, path), mode);
      const message = `${path} can be written by others (mode 0${mode.toString(8)}); chmod go-w it`;
      await t.rejects(check(name), { code: 'unsafe', message }, path);
    }
    chmodSync(join(hostRoot, path), 0o755);
    t.ok(await check(name));
  }
});

t.test('every directory on the way of a symbolic link is checked', async (t) => {
  const { hostRoot, bin, check } = node(t);
  mkdirSync(join(hostRoot, 'srv/a/deep'), { recursive: true, mode: 0o755 });
  writePlugin(join(hostRoot, 'opt/real/tool'), '');
  symlinkSync('/opt/real', join(hostRoot, 'srv/a/to-real'));
  symlinkSync('../../srv/a/deep/../to-real/tool', join(bin, 'far'));
  t.equal(await check('far'), '/opt/bin/far');
  for (const path of ['/srv', '/srv/a', '/srv/a/deep', '/opt/real']) {
    chmodSync(join(hostRoot, path), 0o777);
    await t.rejects(check('far'), { code: 'unsafe', message: new RegExp(`^${path} can be written`) }, path);
    chmodSync(join(hostRoot, path), 0o755);
  }
  t.ok(await check('far'));
});

t.test('below a sticky directory, a directory of root is safe; a file or symbolic link is not', async (t) => {
  const { hostRoot, bin, check } = node(t);
  chmodSync(join(hostRoot, 'opt'), 0o1777);
  t.equal(await check(), '/opt/bin/p');
  writePlugin(join(hostRoot, 'opt/tool'), '');
  symlinkSync('/opt/tool', join(bin, 'linked'));
  symlinkSync('/opt/bin', join(hostRoot, 'opt/alias'));
  const unsafe = { code: 'unsafe', message: '/opt can be written by others (mode 1777); chmod go-w it' };
  await t.rejects(check('linked'), unsafe);
  await t.rejects(check('p', '/opt/alias'), unsafe);
  chmodSync(join(hostRoot, 'opt'), 0o755);
  t.ok(await check('linked'));
  t.ok(await check('p', '/opt/alias'));
});

t.test('programs of other users are refused', async (t) => {
  const { hostRoot, check } = node(t);
  // Only root can change an owner.
  if (process.getuid?.() !== 0) {
    t.equal(await check(), '/opt/bin/p', 'the agent’s own user is accepted');
    return;
  }
  for (const path of ['/opt/bin/p', '/opt/bin', '/opt', '/']) {
    chownSync(join(hostRoot, path), 12_345, 0);
    const message = `${path} belongs to user 12345; chown it to root, or the program is not run`;
    await t.rejects(check(), { code: 'unsafe', message });
    chownSync(join(hostRoot, path), 0, 0);
  }
  t.ok(await check());
});
