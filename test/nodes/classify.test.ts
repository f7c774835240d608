import t from 'tap';
import { architectureOf, classify, withReport } from '../../src/nodes/classify.ts';
import { groupByClass } from '../../src/nodes/node-classes.ts';
import { readExecReport } from '../../src/nodes/exec-report.ts';
import { readNodeReport } from '../../src/nodes/node-report.ts';
import { labeledLevels, levelExpression, levelOfFlags, levelOfLabels } from '../../src/nodes/amd64-level.ts';
import { levelOfVariant } from '../../src/nodes/machine.ts';

type NodeInfo = Readonly<Record<string, string>>;

function nodeOf(nodeInfo: NodeInfo, labels: Readonly<Record<string, string>> = {}, name = 'n') {
  return { metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } }, status: { nodeInfo } };
}

const amd64 = { architecture: 'amd64', operatingSystem: 'linux' };

t.test('the class of a node follows from nodeInfo and labels', async (t) => {
  const classOf = (...given: Parameters<typeof nodeOf>) => classify(nodeOf(...given))?.class;
  t.strictSame(
    classOf({ ...amd64, containerRuntimeVersion: 'containerd://2.1.4', kernelVersion: '6.1.0-40-amd64' }),
    { os: 'linux', architecture: 'amd64', runtime: { name: 'containerd', version: '2.1.4' } },
  );
  t.strictSame(classOf({ ...amd64, containerRuntimeVersion: 'cri-o://1.34.1' })?.runtime, {
    name: 'cri-o',
    version: '1.34.1',
  });
  for (const text of [
    '',
    'containerd',
    'containerd://',
    '://2.1',
    'a b://1',
    `containerd://${'1'.repeat(99)}`,
  ])
    t.equal(classOf({ ...amd64, containerRuntimeVersion: text })?.runtime, undefined, text);
  const arm = { architecture: 'arm64', operatingSystem: 'linux' };
  t.equal(classOf({ ...arm, kernelVersion: '5.14.0-570.12.1.el9_6.aarch64+64k' })?.pageSize, 65_536);
  t.equal(classOf({ ...arm, kernelVersion: '6.8.0-1013-generic-64k' })?.pageSize, 65_536);
  t.equal(classOf({ ...arm, kernelVersion: '6.14.0-63.fc42.aarch64+16k' })?.pageSize, 16_384);
  const level = { 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V2': 'true' };
  t.equal(classOf(amd64, level)?.amd64Level, 2);
  t.equal(classOf(arm, level)?.amd64Level, undefined);
  const windows = { architecture: 'amd64', operatingSystem: 'windows' };
  t.equal(classOf({ ...windows, kernelVersion: '10.0.20348.2113' })?.osVersion, '10.0.20348');
  t.equal(classOf(windows, { 'node.kubernetes.io/windows-build': '10.0.17763' })?.osVersion, '10.0.17763');
});

t.test('a node without nodeInfo has a class', async (t) => {
  const labels = { 'kubernetes.io/arch': 's390x', 'kubernetes.io/os': 'linux' };
  t.strictSame(classify({ metadata: { name: 'n', labels } }), {
    name: 'n',
    class: { os: 'linux', architecture: 's390x' },
    levels: {},
  });
  t.equal(classify(nodeOf({ architecture: '' })), undefined);
  t.equal(classify(nodeOf({ architecture: 'a/b' })), undefined);
  t.equal(architectureOf(nodeOf({ architecture: 'arm64' }, labels)), 'arm64');
});

t.test('the report of the agent refines the class', async (t) => {
  const own = { os: 'linux', architecture: 'amd64', runtime: { name: 'containerd', version: '2.1.4' } };
  const report = {
    runtime: { name: 'containerd', version: '2.1.0' },
    pullMode: 'local',
    amd64Level: 3,
    pageSize: 4096,
  } as const;
  t.strictSame(withReport(own, undefined), own);
  t.strictSame(withReport(own, report), { ...own, pullMode: 'local', amd64Level: 3, pageSize: 4096 });
  const crio = { ...own, runtime: { name: 'cri-o', version: '1.34.1' } };
  t.equal(withReport(crio, report).pullMode, undefined, 'a containerd that the kubelet does not use');
  const { runtime: _, ...bare } = own;
  t.strictSame(withReport(bare, report).runtime, report.runtime);
  t.equal(withReport({ ...own, architecture: 'arm64' }, report).amd64Level, undefined);
  t.equal(withReport({ ...own, amd64Level: 2 }, report).amd64Level, 3, 'preferred to labels');
});

t.test('impossible values of a report are ignored', async (t) => {
  const whole = {
    runtime: { name: 'containerd', version: '2.1.4' },
    pullMode: 'transfer',
    armVariant: 'v8',
    amd64Level: 4,
    aarch32: false,
    pageSize: 65_536,
  };
  t.strictSame(readNodeReport({ ...whole, later: 1 }), whole);
  t.strictSame(readNodeReport({}), {});
  for (const value of [undefined, null, 1, 'x', [whole]]) t.equal(readNodeReport(value), undefined);
  const wrong = {
    runtime: [
      1,
      { name: 'containerd' },
      { name: 'x'.repeat(99), version: '1' },
      { name: 'a b', version: '1' },
      { name: 'c', version: '1\n2' },
    ],
    pullMode: ['Local', '', 1, {}],
    armVariant: ['8', 'v', 'v99', 'v8\n', 8],
    amd64Level: [0, 5, '3', 2.5, null],
    aarch32: ['yes', 1, null],
    pageSize: [0, 4095, '4096', Number.MAX_VALUE],
  };
  for (const [field, values] of Object.entries(wrong))
    for (const value of values)
      t.strictSame(readNodeReport({ [field]: value }), {}, `${field} ${JSON.stringify(value)}`);
});

t.test('a cluster has distinct classes', async (t) => {
  const runtime = (version: string): NodeInfo => ({
    ...amd64,
    containerRuntimeVersion: `containerd://${version}`,
  });
  const nodes = [
    nodeOf(runtime('2.1.4'), {}, 'c'),
    nodeOf(runtime('1.7.24'), {}, 'b'),
    nodeOf(runtime('2.1.4'), {}, 'a'),
    nodeOf({ architecture: 'arm64' }, {}, 'd'),
  ].flatMap((node) => classify(node) ?? []);
  const named = (reports: Parameters<typeof groupByClass>[1]) =>
    [...groupByClass(nodes, reports)].map(([architecture, groups]) => [
      architecture,
      ...groups.map(({ hostnames }) => hostnames.join(' ')),
    ]);
  t.strictSame(named(new Map()), [
    ['amd64', 'b', 'a c'],
    ['arm64', 'd'],
  ]);
  t.strictSame(named(new Map([['a', { pullMode: 'local' }]])), [
    ['amd64', 'b', 'a', 'c'],
    ['arm64', 'd'],
  ]);
  t.strictSame(named(new Map([['elsewhere', { pullMode: 'local' }]])), named(new Map()));
});

t.test('an unknown variant of amd64 has the lowest level', async (t) => {
  t.strictSame(
    ['v1', 'v3', '4', 'odd', undefined].map((variant) => levelOfVariant(variant)),
    [1, 3, 4, 1, 1],
  );
});

t.test('too many classes are reduced to architectures', async (t) => {
  const groupsOf = (count: number) => {
    const nodes = Array.from({ length: count }, (_, at) =>
      classify(nodeOf({ ...amd64, containerRuntimeVersion: `containerd://1.7.${at}` }, {}, `n${at}`)),
    ).flatMap((node) => node ?? []);
    return groupByClass(nodes, new Map()).get('amd64') ?? [];
  };
  t.equal(groupsOf(128).length, 128);
  const groups = groupsOf(129);
  t.equal(groups.length, 1);
  t.equal(groups[0]?.hostnames.length, 129);
  t.strictSame(groups[0]?.class, { os: 'linux', architecture: 'amd64' });
});

/** Some `flags` of /proc/cpuinfo, including all that matter. */
const cpus = {
  // QEMU's qemu64
  qemu64:
    'fpu de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 syscall nx lm pni cx16 hypervisor lahf_lm svm',
  nehalem:
    'fpu de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 syscall nx lm pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm',
  sandyBridge:
    'fpu cx8 cmov mmx fxsr sse sse2 syscall nx lm pni pclmulqdq ssse3 cx16 sse4_1 sse4_2 x2apic popcnt aes xsave avx lahf_lm',
  haswell:
    'fpu cx8 cmov mmx fxsr sse sse2 syscall nx lm pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes xsave avx f16c rdrand lahf_lm abm bmi1 avx2 bmi2 erms',
  skylakeServer:
    'fpu cx8 cmov mmx fxsr sse sse2 syscall nx lm pni ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt aes xsave avx f16c rdrand lahf_lm abm bmi1 avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl',
} as const;

t.test('the level follows from the features of the CPU', async (t) => {
  const levels = Object.values(cpus).map((flags) => levelOfFlags(new Set(flags.split(' '))));
  t.strictSame(levels, [1, 2, 2, 3, 4]);
  const without = (flag: string): number =>
    levelOfFlags(new Set(cpus.skylakeServer.split(' ').filter((each) => each !== flag)));
  t.strictSame(['avx512cd', 'abm', 'movbe', 'lahf_lm', 'popcnt'].map(without), [3, 2, 2, 1, 1]);
  t.equal(levelOfFlags(new Set()), 1);
});

const nfd = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [`feature.node.kubernetes.io/cpu-cpuid.${name}`, 'true']));

t.test('the level follows from labels of NFD', async (t) => {
  t.equal(levelOfLabels({}), undefined);
  t.equal(levelOfLabels(nfd('X86_64_V1', 'X86_64_V2', 'X86_64_V3')), 3);
  t.equal(levelOfLabels({ ...nfd('X86_64_V1'), ...nfd('AVX2') }), 1, 'from v0.19 one label has the level');
  const v3 = ['AVX', 'AVX2', 'FMA3', 'MOVBE'];
  const v4 = [...v3, 'AVX512F', 'AVX512BW', 'AVX512CD', 'AVX512DQ', 'AVX512VL'];
  t.equal(levelOfLabels(nfd('ADX', ...v3)), 3);
  t.equal(levelOfLabels(nfd(...v4)), 4);
  t.equal(levelOfLabels(nfd(...v4.slice(0, -1))), 3);
  t.equal(levelOfLabels(nfd('AESNI', 'AVX')), 2);
  t.equal(levelOfLabels({ 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V3': 'no' }), 2);
  t.equal(levelOfLabels({ 'arch.example/amd64-level': 'v4' }), undefined, 'comes from the agent');
});

t.test('expressions select nodes of a level and higher ones', async (t) => {
  t.strictSame(labeledLevels({ 'arch.example/amd64-level': 'v3', ...nfd('X86_64_V1') }), { own: 3, nfd: 1 });
  t.strictSame(labeledLevels({ 'arch.example/amd64-level': 'v9', ...nfd('AVX2') }), {});
  t.strictSame(levelExpression('own', 3), {
    key: 'arch.example/amd64-level',
    operator: 'In',
    values: ['v3', 'v4'],
  });
  t.strictSame(levelExpression('nfd', 2), {
    key: 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V2',
    operator: 'In',
    values: ['true'],
  });
});

t.test('an exec report with an unknown state is not read', async (t) => {
  t.strictSame(readExecReport({ state: 'no-tracefs' }), { state: 'no-tracefs', errors: [] });
  t.equal(readExecReport({ state: 'magic' }), undefined);
});
