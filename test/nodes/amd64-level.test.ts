import t from 'tap';
import { labeledLevels, levelExpression, levelOfFlags, levelOfLabels } from '../../src/nodes/amd64-level.ts';

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
