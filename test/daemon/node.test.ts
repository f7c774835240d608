/** What a node runs: its container runtime, and its CPU and kernel. */
import { symlinkSync, chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { findRuntime } from '../../daemon/find-runtime.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';
import { writeFiles } from '../support/write-files.ts';
import { containerdProgram } from '../../daemon/containerd/config/rules.ts';
import { createVersionFinder } from '../../daemon/node-programs.ts';
import { readMachine } from '../../daemon/machine/machine.ts';

const both = ['/etc/crio/crio.conf.d/10-crio.conf', '/etc/containerd/config.toml'];
const crio = ['/etc/crio/crio.conf'];
const k3sSocket = '/run/k3s/containerd/containerd.sock';
const crioSocket = '/run/crio/crio.sock';
const containerdSocket = '/run/containerd/containerd.sock';
const wants = '/etc/systemd/system/multi-user.target.wants';

/** Empty files, besides those with a text. */
const files = (empty: readonly string[], texts: Readonly<Record<string, string>> = {}) => ({
  ...Object.fromEntries(empty.map((path) => [path, ''])),
  ...texts,
});
const kubelet = '/var/lib/kubelet';
const flags = {
  [`${kubelet}/kubeadm-flags.env`]:
    'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"\n',
};
const setting = {
  [`${kubelet}/config.yaml`]: 'a: 1\ncontainerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n',
};
const otherKeys = {
  [`${kubelet}/config.yaml`]:
    '# containerRuntimeEndpoint: unix:///run/crio/crio.sock\nx-containerRuntimeEndpoint: /run/crio/crio.sock\nxcontainerRuntimeEndpoint: crio\n',
};
const unit = {
  '/etc/systemd/system/kubelet.service':
    '[Service]\nExecStart=/usr/bin/kubelet --container-runtime-endpoint /var/run/crio/crio.sock --v=2\n',
};
const enabled = [...both, `${wants}/containerd.service`];
const withContainerd = [...both, containerdSocket];

const cases: readonly (readonly [string, ReturnType<typeof files>, runtime: string, reason: RegExp])[] = [
  ['nothing', {}, 'containerd', /no files of CRI-O/],
  ['empty directories', files(['/etc/containers/registries.conf']), 'containerd', /no files of CRI-O/],
  ['crio.conf', files(crio), 'cri-o', /files of CRI-O/],
  ['a drop-in of CRI-O beside config.toml', files(both), 'containerd', /config\.toml exists/],
  ['an enabled CRI-O', files([...both, `${wants}/crio.service`]), 'cri-o', /crio\.service is enabled/],
  ['the socket of k3s', files([...both, crioSocket, k3sSocket]), 'containerd', /k3s.*sock exists/],
  ['an enabled k0s', files([...crio, `${wants}/k0sworker.service`]), 'containerd', /k0sworker\.service is/],
  ['the socket of CRI-O', files([...withContainerd, crioSocket]), 'cri-o', /crio\.sock exists/],
  ['the socket of CRI-O alone', files([crioSocket]), 'cri-o', /crio\.sock exists/],
  ['the socket of containerd alone', files(withContainerd), 'containerd', /containerd\.sock exists/],
  ['an enabled containerd', files(enabled), 'containerd', /is enabled/],
  ['both enabled', files([...enabled, `${wants}/crio.service`]), 'cri-o', /crio\.service is enabled/],
  ['flags of kubeadm', files([...both, crioSocket], flags), 'containerd', /kubeadm-flags\.env names its/],
  ["the kubelet's configuration", files(withContainerd, setting), 'cri-o', /config\.yaml names its socket/],
  ['comments and other keys', files(withContainerd, otherKeys), 'containerd', /containerd\.sock exists/],
  ["the kubelet's service", files(withContainerd, unit), 'cri-o', /command line of the kubelet/],
];

for (const [name, paths, runtime, reason] of cases) {
  t.test(`${name}: ${runtime}`, async (t) => {
    const root = t.testdir();
    writeFiles(root, paths);
    like(t, await findRuntime(root), { name: runtime, reason });
  });
}

t.test('a masked service is not enabled', async (t) => {
  const root = t.testdir();
  writeFiles(root, files([...both, `${wants}/crio.service`]));
  symlinkSync('/dev/null', join(root, '/etc/systemd/system/crio.service'));
  like(t, await findRuntime(root), { name: 'containerd' });
});

t.test('a file that may not be examined exists', async (t) => {
  const root = t.testdir({ etc: { crio: {} } });
  symlinkSync(`${'../'.repeat(20)}etc/passwd`, join(root, 'etc/crio/crio.conf'));
  like(t, await findRuntime(root), { name: 'cri-o' });
});

/** Programs in a directory. The node's root is `/`, so the tests need no chroot. */
function finder(t: Test, scripts: Readonly<Record<string, string>>) {
  const dir = t.testdir();
  chmodSync(dir, 0o755);
  const write = (name: string, text: string) => {
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  };
  for (const [name, text] of Object.entries(scripts)) write(name, text);
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const clock = createFakeClock();
  const made = createVersionFinder(containerdProgram, '/', stop.signal, clock);
  const path = (name: string) => join(dir, name);
  return { find: (...names: string[]) => made(names.map(path)), write, path, clock };
}

t.test('versions are read from the output of programs', async (t) => {
  const { find } = finder(t, {
    upstream:
      'echo "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376"',
    debian: 'echo "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1"',
    k3s: 'echo "containerd github.com/k3s-io/containerd v2.1.5-k3s1 abc"',
  });
  t.strictSame(await find('upstream'), { version: 'v2.1.4' });
  t.strictSame(await find('debian'), { version: '1.6.20~ds1' });
  t.strictSame(await find('k3s'), { version: 'v2.1.5-k3s1' });
  t.strictSame(await find('none', 'k3s', 'debian'), { version: 'v2.1.5-k3s1' }, 'the first existing program');
  t.strictSame(await find('none'), {});
});

t.test('the program gets --version and none of the agent’s environment', async (t) => {
  process.env['ARCHWRIGHT_TEST_SECRET'] = 'x';
  t.teardown(() => delete process.env['ARCHWRIGHT_TEST_SECRET']);
  const { find } = finder(t, {
    p: 'test "$*" = --version && test -z "$ARCHWRIGHT_TEST_SECRET" && echo "containerd x v1.7.0 y"',
  });
  t.strictSame(await find('p'), { version: 'v1.7.0' });
});

t.test('programs that fail, print no version or must not run give no version', async (t) => {
  const { find, path } = finder(t, {
    silent: 'true',
    other: 'echo "runc version 1.1.5"',
    garbage: 'echo "containerd x devel y"',
    failing: 'exit 3',
    loud: 'yes containerd',
    writable: 'echo "containerd x v1.7.0 y"',
  });
  chmodSync(path('writable'), 0o777);
  for (const name of ['silent', 'other', 'garbage', 'failing', 'loud', 'writable']) {
    const { version, problem } = await find(name);
    t.equal(version, undefined, name);
    like(t, problem, { origin: path(name), message: /set containerdVersion$/ }, name);
  }
});

t.test('a program runs once, and again after it was replaced', async (t) => {
  const { find, write, path } = finder(t, {});
  write('p', `echo x >>${path('runs')}; echo "containerd x v1.0.$(wc -l <${path('runs')}) y"`);
  t.strictSame(await find('p'), { version: 'v1.0.1' });
  t.strictSame(await find('p'), { version: 'v1.0.1' });
  write('q', 'echo "containerd x v3.0.0 y"');
  symlinkSync(path('q'), path('link'));
  t.strictSame(await find('link'), { version: 'v3.0.0' });
  write('q', 'echo "containerd x v3.0.1 y" # longer');
  t.strictSame(await find('link'), { version: 'v3.0.1' });
});

t.test('while the version is unknown, the program runs again each minute', async (t) => {
  const { find, path, clock } = finder(t, { p: 'echo "containerd x v1.7.0 y"' });
  chmodSync(path('p'), 0o777);
  const { problem } = await find('p');
  like(t, problem, { message: /chmod go-w it/ });
  chmodSync(path('p'), 0o755);
  await clock.advance(59_999);
  t.strictSame(await find('p'), { problem });
  await clock.advance(1);
  t.strictSame(await find('p'), { version: 'v1.7.0' });
});

interface Proc {
  readonly cpuinfo?: string;
  readonly pageSize?: number;
  /** Names in /proc/sys/vm. */
  readonly vm?: readonly string[];
}

function procOf(t: Test, { cpuinfo, pageSize, vm = [] }: Proc): string {
  // AT_SYSINFO_EHDR, AT_PAGESZ, AT_NULL
  const words = new BigUint64Array([33n, 1n << 40n, 6n, BigInt(pageSize ?? 0), 0n, 0n]);
  return t.testdir({
    ...(cpuinfo !== undefined && { cpuinfo }),
    ...(pageSize !== undefined && { self: { auxv: Buffer.from(words.buffer) } }),
    sys: { vm: Object.fromEntries(vm.map((name) => [name, '28\n'])) },
  });
}

const base = 'fpu cx8 cmov mmx fxsr sse sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm';
const haswell = `${base} fma movbe xsave avx f16c abm bmi1 avx2 bmi2`;
const x86 = (...flags: readonly string[]): string =>
  flags
    .map(
      (each, at) => `processor\t: ${at}\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: ${each}\nbugs\t\t:\n`,
    )
    .join('\n');
const arm = (part: string, implementer = '0x41', count = 2): string =>
  Array.from(
    { length: count },
    (_, at) =>
      `processor\t: ${at}\nFeatures\t: fp asimd\nCPU implementer\t: ${implementer}\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: ${part}\n`,
  ).join('\n');
const sysctls = ['mmap_rnd_bits', 'mmap_rnd_compat_bits'];

t.test('amd64: the lowest level of all processors', async (t) => {
  const level = async (cpuinfo: string) => (await readMachine('amd64', procOf(t, { cpuinfo }))).amd64Level;
  t.equal(await level(x86(haswell, haswell)), 3);
  t.equal(await level(x86(haswell, base)), 2);
  t.equal(await level('nothing that it knows'), undefined);
});

t.test('arm64: 32-bit programs run if kernel and CPU support them', async (t) => {
  const cases: readonly (readonly [string, Proc, boolean | undefined])[] = [
    ['Neoverse N1', { cpuinfo: arm('0xd0c'), vm: sysctls }, true],
    ['a kernel without 32 bits', { cpuinfo: arm('0xd0c'), vm: ['mmap_rnd_bits'] }, false],
    ['a CPU that is not listed', { cpuinfo: arm('0xd4f'), vm: sysctls }, undefined],
    ['the part of another implementer', { cpuinfo: arm('0xd0c', '0x61'), vm: sysctls }, undefined],
    ['two kinds of processors', { cpuinfo: `${arm('0xd05')}\n${arm('0xd4d')}`, vm: sysctls }, undefined],
    ['no sysctl can be read', { cpuinfo: arm('0xd0c') }, undefined],
    ['nothing', {}, undefined],
  ];
  for (const [name, proc, expected] of cases) {
    const { aarch32 } = await readMachine('arm64', procOf(t, proc));
    t.equal(aarch32, expected, name);
  }
});

t.test('arm: the variant that containerd detects', async (t) => {
  const variant = async (cpuinfo: string) => (await readMachine('arm', procOf(t, { cpuinfo }))).armVariant;
  t.equal(await variant('model name\t: ARMv7 Processor rev 4 (v7l)\nCPU architecture: 7\n'), 'v7');
  t.equal(await variant('model name\t: ARMv6-compatible processor rev 7 (v6l)\nCPU architecture: 7\n'), 'v6');
  t.equal(await variant('CPU architecture: 5TEJ\n'), 'v5');
  t.equal(await variant('CPU architecture: AArch64\n'), 'v8');
  t.equal(await variant('CPU architecture: 12\n'), undefined);
  const { armVariant } = await readMachine('arm64', procOf(t, { cpuinfo: arm('0xd0c') }));
  t.equal(armVariant, 'v8');
});

t.test('the page size is read', async (t) => {
  const other = procOf(t, { pageSize: 4096, cpuinfo: arm('0xd0c'), vm: sysctls });
  t.strictSame(await readMachine('s390x', other), { pageSize: 4096 }, 'and no more of other architectures');
  t.equal((await readMachine('arm64', procOf(t, { pageSize: 65_536 }))).pageSize, 65_536);
});

t.test('this machine is read; oversized and missing files are ignored', async (t) => {
  like(t, await readMachine('amd64'), { pageSize: Number });
  t.strictSame(await readMachine('amd64', join(t.testdir(), 'none')), {});
  const cpuinfo = `${x86(haswell)}\n`.repeat(40_000);
  t.strictSame(await readMachine('amd64', procOf(t, { cpuinfo })), {});
});
