import { chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  baseEnvironment,
  kubeletProgram,
  pluginEnvironment,
  runningProcess,
} from '../../../../daemon/kubelet/run/environment.ts';
import { scrub } from '../../../../src/telemetry/scrub.ts';

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
