/**
 * Levels of x86-64 CPUs by the psABI (x86-64-ABI, low-level-sys-info.tex): each has all features of those
 * below it. The kernel's names of features are in /proc/cpuinfo; Node Feature Discovery (NFD) has its own.
 */
import { keys } from '../names/keys.ts';
import type { Amd64Level } from './node-class.ts';

export const amd64Levels: readonly Amd64Level[] = [1, 2, 3, 4];

export function highestOf(levels: readonly (Amd64Level | undefined)[]): Amd64Level | undefined {
  return amd64Levels.findLast((level) => levels.includes(level));
}

/** Flags from level 2. Linux arch/x86/include/asm/cpufeatures.h: `pni` is SSE3, `abm` LZCNT, `xsave` OSXSAVE. */
const kernelFlags: readonly (readonly string[])[] = [
  ['cx16', 'lahf_lm', 'popcnt', 'pni', 'sse4_1', 'sse4_2', 'ssse3'],
  ['avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'abm', 'movbe', 'xsave'],
  ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl'],
];

/** The level of a CPU by the field `flags` of /proc/cpuinfo. */
export function levelOfFlags(flags: ReadonlySet<string>): Amd64Level {
  const missing = kernelFlags.findIndex((wanted) => !wanted.every((flag) => flags.has(flag)));
  return amd64Levels[missing === -1 ? kernelFlags.length : missing] ?? 1;
}

type Labels = Readonly<Record<string, string>>;

const nfdPrefix = 'feature.node.kubernetes.io/cpu-cpuid.';

/** NFD from v0.19 has a label for each level of a CPU (node-feature-discovery #2490). */
function nfdLevelKey(level: Amd64Level): string {
  return `${nfdPrefix}X86_64_V${level}`;
}

/**
 * Features that earlier versions of NFD publish by default, by level from 3. Others are in its denylist
 * (BMI1, F16C, LZCNT, …), but no CPU has these without them. A level below 3 cannot be told, so it counts as
 * 2.
 */
const nfdFeatures: readonly (readonly string[])[] = [
  ['AVX', 'AVX2', 'FMA3', 'MOVBE'],
  ['AVX512F', 'AVX512BW', 'AVX512CD', 'AVX512DQ', 'AVX512VL'],
];

/** Levels that node labels state, and on which a pod can be scheduled; absent without such a label. */
export interface LabeledLevels {
  /** `arch.example/amd64-level`, which the controller writes. */
  readonly own?: Amd64Level;
  /** The highest of NFD's levels. */
  readonly nfd?: Amd64Level;
}

export function labeledLevels(labels: Labels): LabeledLevels {
  const own = amd64Levels.find((level) => labels[keys.amd64Level] === `v${level}`);
  const nfd = amd64Levels.findLast((level) => labels[nfdLevelKey(level)] === 'true');
  return { ...(own && { own }), ...(nfd && { nfd }) };
}

/** The level by the labels of NFD. The controller's label comes from the agent, so it says nothing new. */
export function levelOfLabels(labels: Labels): Amd64Level | undefined {
  const { nfd } = labeledLevels(labels);
  if (nfd !== undefined) return nfd;
  if (!Object.keys(labels).some((key) => key.startsWith(nfdPrefix))) return undefined;
  const has = (name: string): boolean => labels[`${nfdPrefix}${name}`] === 'true';
  const missing = nfdFeatures.findIndex((wanted) => !wanted.every(has));
  return amd64Levels[missing === -1 ? 3 : missing + 1];
}

export interface LabelExpression {
  readonly key: string;
  readonly operator: 'In';
  readonly values: readonly string[];
}

/** Whether an expression of `levelExpression` can have this key. */
export function isLevelKey(key: string): boolean {
  return key === keys.amd64Level || amd64Levels.some((level) => key === nfdLevelKey(level));
}

/** The expression that matches nodes with a label for this level or a higher one. */
export function levelExpression(source: keyof LabeledLevels, level: Amd64Level): LabelExpression {
  if (source === 'nfd') return { key: nfdLevelKey(level), operator: 'In', values: ['true'] };
  const values = amd64Levels.filter((each) => each >= level).map((each) => `v${each}`);
  return { key: keys.amd64Level, operator: 'In', values };
}
