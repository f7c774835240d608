import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { checkBinary } from '../../../../daemon/kubelet/run/binary.ts';
import { writePlugin } from '../support.ts';
import {
  baseEnvironment,
  kubeletProgram,
  pluginEnvironment,
  runningProcess,
} from '../../../../daemon/kubelet/run/environment.ts';
import { scrub } from '../../../../src/telemetry/scrub.ts';

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

const isRoot = process.getuid?.() === 0;

interface Process {
  readonly name: string;
  readonly namespace?: string;
  readonly environ?: string;
  readonly cmdline?: string;
  readonly uid?: number;
}

function writeProcesses(root: string, processes: Readonly<Record<number, Process>>): void {
  for (const [pid, process] of Object.entries(processes)) {
    const { name, namespace = 'mnt:[1]', environ = '', cmdline = '', uid = 0 } = process;
    const dir = join(root, 'proc', pid);
    mkdirSync(join(dir, 'ns'), { recursive: true });
    writeFileSync(join(dir, 'comm'), `${name}\n`);
    writeFileSync(join(dir, 'environ'), environ);
    writeFileSync(join(dir, 'cmdline'), cmdline);
    symlinkSync(namespace, join(dir, 'ns/mnt'));
    if (uid !== 0 && isRoot) chownSync(dir, uid, uid);
  }
}

t.test('plugins get the variables of the kubelet, of the setting, and their own', async (t) => {
  const env = [
    { name: 'B', value: '' },
    { name: 'D', value: 'd' },
    { name: 'D', value: 'last' },
  ];
  const variables = pluginEnvironment({ A: '1', B: '1', C: '1' }, { C: 'of the setting' }, env);
  t.strictSame(variables, { A: '1', B: '', C: 'of the setting', D: 'last' });
  t.strictSame(pluginEnvironment({ A: '1' }), { A: '1' });
});

t.test('values of variables with secret names are scrubbed', async (t) => {
  pluginEnvironment({ MY_PASSWORD: 'opensesame' }, { AWS_SECRET_ACCESS_KEY: 'abcdefgh' }, [
    { name: 'AWS_REGION', value: 'eu-west-1' },
  ]);
  t.equal(scrub('opensesame abcdefgh eu-west-1'), '[secret] [secret] eu-west-1');
});

t.test('the variables of the kubelet with the lowest process id; malformed ones are dropped', async (t) => {
  const root = t.testdir();
  writeProcesses(root, {
    1: { name: 'systemd' },
    20: { name: 'sshd', environ: 'WRONG=1\0' },
    300: { name: 'kubelet', environ: 'A=1\0URL=http://p:3128?a=b\0EMPTY=\0A=2\0junk\0=C:=x\0' },
    1000: { name: 'kubelet', environ: 'WRONG=2\0' },
  });
  const { isRunning, variables } = await kubeletProgram(root);
  t.equal(isRunning, isRoot);
  const found = { A: '2', URL: 'http://p:3128?a=b', EMPTY: '', '=C:': 'x' };
  t.strictSame(variables, isRoot ? found : baseEnvironment);
});

t.test('the arguments of a program, empty ones too', async (t) => {
  const root = t.testdir();
  writeProcesses(root, {
    1: { name: 'systemd' },
    7: { name: 'crio', environ: 'A=1\0', cmdline: '/usr/bin/crio\0--config\0\0' },
  });
  const found = await runningProcess(root, new Set(['crio']));
  const wanted = { args: ['/usr/bin/crio', '--config', ''], variables: { A: '1' } };
  t.strictSame(found, isRoot ? wanted : undefined);
});

t.test('only a root process of the node counts as the kubelet', async (t) => {
  const evil = { name: 'kubelet', environ: 'LD_PRELOAD=/evil.so\0' };
  const cases: Record<number, Process>[] = [
    { 1: { name: 'systemd' }, 2: { ...evil, namespace: 'mnt:[2]' } },
    ...(isRoot ? [{ 1: { name: 'systemd' }, 2: { ...evil, uid: 1000 } }] : []),
    { 1: { name: 'systemd' }, 2: { ...evil, name: 'kubelet-helper' } },
    { 2: evil },
    {},
  ];
  for (const processes of cases) {
    const root = t.testdir();
    writeProcesses(root, processes);
    const { isRunning, variables } = await kubeletProgram(root);
    t.notOk(isRunning, JSON.stringify(processes));
    t.strictSame(variables, baseEnvironment);
  }
});

t.test('processes of k3s and MicroK8s count as the kubelet', async (t) => {
  for (const name of ['k3s', 'k3s-server', 'k3s-agent', 'kubelite']) {
    const root = t.testdir();
    writeProcesses(root, { 1: { name: 'init' }, 2: { name, environ: 'A=1\0' } });
    t.strictSame((await kubeletProgram(root)).variables, isRoot ? { A: '1' } : baseEnvironment);
  }
});
