/** Whether a value has the shape that the placement needs. The API server checks objects only after mutation. */
import type { Pod, PodTemplate } from '../kube/api/objects.ts';

export class InvalidObject extends Error {
  readonly code = 'not-understood';
  readonly temporary = false;
  /** Path of the field at fault, such as `spec.containers`. */
  readonly where: string;
  constructor(where: string, expected: string) {
    super(`${where} is not ${expected}`);
    this.name = 'InvalidObject';
    this.where = where;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws InvalidObject */
export function podOf(object: unknown): Pod {
  return templateOf(object, 'object');
}

/**
 * Checks a pod or a pod template as far as images are concerned; placement rules check what else they read. @throws InvalidObject
 * @param where path of the value, for the error
 */
export function templateOf(value: unknown, where: string): PodTemplate {
  if (!isObject(value)) throw new InvalidObject(where, 'an object');
  const { metadata, spec } = value;
  if (metadata !== undefined && metadata !== null && !isObject(metadata))
    throw new InvalidObject(`${where}.metadata`, 'an object');
  if (!isObject(spec)) throw new InvalidObject(`${where}.spec`, 'an object');
  checkContainers(spec['containers'], `${where}.spec.containers`);
  checkContainers(spec['initContainers'] ?? [], `${where}.spec.initContainers`);
  checkObjects(spec['volumes'] ?? [], `${where}.spec.volumes`);
  checkObjects(spec['imagePullSecrets'] ?? [], `${where}.spec.imagePullSecrets`);
  return value as unknown as PodTemplate;
}

function checkContainers(value: unknown, where: string): void {
  for (const container of checkObjects(value, where)) {
    const { image } = container;
    if (image !== undefined && image !== null && typeof image !== 'string')
      throw new InvalidObject(`${where}[].image`, 'a text');
  }
}

function checkObjects(value: unknown, where: string): readonly JsonObject[] {
  if (!Array.isArray(value)) throw new InvalidObject(where, 'a list');
  for (const entry of value) if (!isObject(entry)) throw new InvalidObject(where, 'a list of objects');
  return value as readonly JsonObject[];
}
