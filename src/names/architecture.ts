/**
 * Architecture names and the node labels that carry them. A name comes from registries, labels and annotations, so it
 * is written into a pod only where it is a valid label value; anything else would have the pod refused.
 */
import { keys } from './keys.ts';

/** `k8s.io/apimachinery` validation: at most 63 characters, alphanumeric at both ends. */
const labelValue = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/u;

/** Go has 13 ports to Linux. More names than this are a joke, and 16 of them still fit a small annotation. */
export const maxArchitectures = 16;

/** The value that no node carries; required where a pod shall pend because its images share no architecture. */
export const noArchitecture = 'no-common-architecture';

/** Whether a node's label could say this architecture. `unknown` is what attestations carry. */
export function isArchitecture(name: string): boolean {
  return labelValue.test(name) && name !== 'unknown';
}

const bytecode: ReadonlySet<string> = new Set(['wasm', 'wasm32', 'wasm64']);

/** WebAssembly, by the names that images have for it: a runtime class brings what runs it, on whatever processor. */
export function isBytecode(name: string): boolean {
  return bytecode.has(name);
}

/** Whether a text is a valid value of a label; an empty one is. */
export function isLabelValue(value: unknown): value is string {
  return typeof value === 'string' && (value === '' || labelValue.test(value));
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

/** Code unit order: the same everywhere, whatever the locale. */
export function byName(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
