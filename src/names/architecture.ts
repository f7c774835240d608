/**
 * Architecture names and the node labels that carry them. A name comes from registries, labels and
 * annotations. Only a valid label value may be written into a pod: the API server refuses a pod with any
 * other.
 */
import { keys } from './keys.ts';
import { isNonEmptyLabelValue } from './labels.ts';
import { printable } from './printable.ts';
import { didYouMean } from './suggestion.ts';

/** Go has 13 ports to Linux. 16 names still fit a small annotation. */
export const maxArchitectures = 16;

/** No node has this value. A pod must stay pending if its images share no architecture. */
export const noArchitecture = 'no-common-architecture';

/** Whether a node can have this label value. Attestations have `unknown`, which no node has. */
export function isArchitecture(name: string): boolean {
  return isNonEmptyLabelValue(name) && !(name.length === 7 && name.toLowerCase() === 'unknown');
}

const otherNames = {
  amd64: ['x86_64', 'x86-64', 'x64'],
  '386': ['i386', 'i686', 'x86'],
  arm64: ['aarch64', 'arm64v8'],
  arm: ['armhf', 'armel', 'armv7', 'armv7l', 'arm32v7'],
  ppc64le: ['ppc64el'],
};

/** Names in compilers, kernels and distributions. No node has such a label: pods would stay pending. */
export const namesElsewhere: ReadonlyMap<string, string> = new Map(
  Object.entries(otherNames).flatMap(([label, names]) => names.map((name) => [name, label] as const)),
);

/** Values of `kubernetes.io/arch` with published kubelets. Others are valid too. */
export const architecturesOfNodes = new Set(['amd64', 'arm64', 'arm', '386', 'ppc64le', 's390x', 'riscv64']);

/** Go's other ports to Linux (`go tool dist list`): anyone can build a kubelet for them. */
const otherPorts = ['loong64', 'mips', 'mips64', 'mips64le', 'mipsle', 'ppc64'];
export const knownArchitectures: ReadonlySet<string> = new Set([...architecturesOfNodes, ...otherPorts]);

/**
 * @param others names that count as known too, such as those of nodes and images
 * @returns `unknown architecture amd46; did you mean amd64?` for a name that is probably a mistake;
 * `undefined` for a known one
 */
export function unknownArchitecture(name: string, others: readonly string[] = []): string | undefined {
  if (knownArchitectures.has(name) || others.includes(name)) return undefined;
  const elsewhere = namesElsewhere.get(name.toLowerCase());
  const hint =
    elsewhere === undefined ? didYouMean(name, knownArchitectures) : `; did you mean ${elsewhere}?`;
  return `unknown architecture ${printable(name, 63)}${hint}`;
}

const bytecode: ReadonlySet<string> = new Set(['wasm', 'wasm32', 'wasm64']);

/** Whether a name is one of WebAssembly. A runtime class provides its runtime, on any processor. */
export function isBytecode(name: string): boolean {
  return bytecode.has(name);
}

export function isArchitectureKey(key: string): boolean {
  return key === keys.architectureLabel || key === keys.betaArchitectureLabel;
}

/** Values of the label `architecture` of metrics; others count as `other`. A closed list bounds the number of series. */
export const countedArchitectures = [...[...architecturesOfNodes, 'loong64'].sort(), 'other'];
