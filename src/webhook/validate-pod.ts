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
 * Checks the shape of what placement reads in a pod or a pod template. @throws InvalidObject
 * @param where path of the value, for the error
 */
export function templateOf(value: unknown, where: string): PodTemplate {
  if (!isObject(value)) throw new InvalidObject(where, 'an object');
  const { metadata, spec } = value;
  if (metadata !== undefined && metadata !== null && !isObject(metadata))
    throw new InvalidObject(`${where}.metadata`, 'an object');
  checkTexts(metadata?.['labels'], `${where}.metadata.labels`);
  checkTexts(metadata?.['annotations'], `${where}.metadata.annotations`);
  if (!isObject(spec)) throw new InvalidObject(`${where}.spec`, 'an object');
  checkContainers(spec['containers'], `${where}.spec.containers`);
  checkContainers(spec['initContainers'] ?? [], `${where}.spec.initContainers`);
  checkVolumes(spec['volumes'] ?? [], `${where}.spec.volumes`);
  for (const name of checkObjects(spec['imagePullSecrets'] ?? [], `${where}.spec.imagePullSecrets`))
    checkFields(name, ['name'], `${where}.spec.imagePullSecrets[]`);
  checkFields(spec, ['nodeName', 'serviceAccountName', 'runtimeClassName'], `${where}.spec`);
  checkScheduling(spec, `${where}.spec`);
  return value as unknown as PodTemplate;
}

function checkScheduling(spec: JsonObject, where: string): void {
  checkTexts(spec['nodeSelector'], `${where}.nodeSelector`);
  for (const toleration of checkObjects(spec['tolerations'] ?? [], `${where}.tolerations`))
    checkFields(toleration, ['key', 'operator', 'value', 'effect'], `${where}.tolerations[]`);
  for (const gate of checkObjects(spec['schedulingGates'] ?? [], `${where}.schedulingGates`))
    checkFields(gate, ['name'], `${where}.schedulingGates[]`);
  const os = checkObject(spec['os'], `${where}.os`);
  if (os) checkFields(os, ['name'], `${where}.os`);
  const affinity = checkObject(spec['affinity'], `${where}.affinity`);
  const nodes = checkObject(affinity?.['nodeAffinity'], `${where}.affinity.nodeAffinity`);
  if (!nodes) return;
  const place = `${where}.affinity.nodeAffinity`;
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const terms = checkObject(nodes[required], `${place}.${required}`)?.['nodeSelectorTerms'] ?? [];
  for (const term of checkObjects(terms, `${place}.${required}.nodeSelectorTerms`))
    checkTerm(term, `${place}.${required}.nodeSelectorTerms[]`);
  for (const { preference } of checkObjects(nodes[preferred] ?? [], `${place}.${preferred}`))
    checkTerm(checkObject(preference, `${place}.${preferred}[].preference`) ?? {}, `${place}.${preferred}[]`);
}

function checkTerm(term: JsonObject, where: string): void {
  for (const field of ['matchExpressions', 'matchFields']) {
    for (const expression of checkObjects(term[field] ?? [], `${where}.${field}`)) {
      checkFields(expression, ['key', 'operator'], `${where}.${field}[]`);
      const { values } = expression;
      if (values === undefined || values === null) continue;
      if (!Array.isArray(values) || values.some((each) => typeof each !== 'string'))
        throw new InvalidObject(`${where}.${field}[].values`, 'a list of texts');
    }
  }
}

function checkObject(value: unknown, where: string): JsonObject | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new InvalidObject(where, 'an object');
  return value;
}

/** Labels, annotations, node selectors. */
function checkTexts(value: unknown, where: string): void {
  for (const text of Object.values(checkObject(value, where) ?? {}))
    if (typeof text !== 'string') throw new InvalidObject(where, 'an object of texts');
}

function checkContainers(value: unknown, where: string): void {
  for (const container of checkObjects(value, where))
    checkFields(container, ['name', 'image', 'imagePullPolicy'], `${where}[]`);
}

function checkVolumes(value: unknown, where: string): void {
  for (const volume of checkObjects(value, where)) {
    checkFields(volume, ['name'], `${where}[]`);
    const image = checkObject(volume['image'], `${where}[].image`);
    if (image) checkFields(image, ['reference', 'pullPolicy'], `${where}[].image`);
  }
}

/** Fields that are texts if they are set. */
function checkFields(object: JsonObject, fields: readonly string[], where: string): void {
  for (const field of fields) {
    const value = object[field];
    if (value !== undefined && value !== null && typeof value !== 'string')
      throw new InvalidObject(`${where}.${field}`, 'a text');
  }
}

function checkObjects(value: unknown, where: string): readonly JsonObject[] {
  if (!Array.isArray(value)) throw new InvalidObject(where, 'a list');
  for (const entry of value) if (!isObject(entry)) throw new InvalidObject(where, 'a list of objects');
  return value as readonly JsonObject[];
}
