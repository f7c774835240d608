/**
 * Architecture names and the node labels that carry them. A name comes from registries, labels and annotations. Only a
 * valid label value may be written into a pod: the API server refuses a pod with any other.
 */
import { keys } from './keys.ts';
import { isNonEmptyLabelValue } from './labels.ts';

/** Go has 13 ports to Linux. 16 names still fit a small annotation. */
export const maxArchitectures = 16;

/** No node carries this value. A pod that must stay pending, because its images share no architecture, requires it. */
export const noArchitecture = 'no-common-architecture';

/** Whether a node label can have this architecture as its value. Attestations have `unknown`, which no node has. */
export function isArchitecture(name: string): boolean {
  return isNonEmptyLabelValue(name) && !(name.length === 7 && name.toLowerCase() === 'unknown');
}

const bytecode: ReadonlySet<string> = new Set(['wasm', 'wasm32', 'wasm64']);

/** Whether a name is one of WebAssembly. A runtime class provides its runtime, on any processor. */
export function isBytecode(name: string): boolean {
  return bytecode.has(name);
}

export function isArchitectureKey(key: string): boolean {
  return key === keys.architectureLabel || key === keys.betaArchitectureLabel;
}

/**
 * Reads a record's own property: architecture names such as `constructor` are valid and must not find what every object
 * inherits.
 */
export function own<Value>(
  record: Readonly<Record<string, Value>> | null | undefined,
  key: string,
): Value | undefined {
  return record !== null && record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Code unit order: the same everywhere, whatever the locale. */
export function byName(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
