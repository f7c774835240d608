/** The pods in documents: in workloads, other objects with a pod spec (Argo, Knative), lists and arrays. */
import { imagesOf, type ImageUse } from '../../src/placement/pod/images.ts';
import { operatingSystemOf } from '../../src/placement/pod/operating-system.ts';
import type { PodSpec, PodTemplate } from '../../src/kube/api/objects.ts';
import { InvalidObject, templateOf } from '../../src/webhook/validate-pod.ts';
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { admittedPodOf, kindOf } from '../../src/webhook/workloads.ts';
import { creationOf } from '../explain/input.ts';
import { listItems, type FoundDocument, type Steps } from '../objects/documents.ts';
import { UsageError } from '../program/exit.ts';
import { cell } from '../program/table.ts';
import { chosenBy } from '../report/verdict.ts';

export interface Owner {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface ImagePlace {
  readonly image: string;
  /** Name of the container or volume. */
  readonly usedBy: string;
  readonly file: string;
  readonly line: number;
}

export interface CheckedPod {
  readonly owner: Owner;
  readonly os: string;
  /** Architectures that the pod chooses itself; `undefined`: any. */
  readonly chosen: readonly string[] | undefined;
  readonly uses: readonly ImageUse[];
  readonly places: readonly ImagePlace[];
}

export interface FoundPods {
  readonly pods: readonly CheckedPod[];
  /** Number of Kubernetes objects, with and without pods. */
  readonly objects: number;
}

/** Real pod specs are 12 levels deep in a list of lists. */
const maxDepth = 40;

/** @throws UsageError for a workload that no API server would take */
export function podsIn(document: FoundDocument, file: string): FoundPods {
  const search = new Search(file, document.line);
  search.walk(document.value, [], { kind: '', namespace: '', name: '' });
  const pods = search.found.map(({ owner, pod, path }) => ({
    owner,
    os: operatingSystemOf(pod.spec),
    chosen: chosenBy(pod),
    uses: imagesOf(pod.spec),
    places: imagesIn(pod.spec, path).map(({ image, usedBy, path }) => ({
      image,
      usedBy,
      file,
      line: document.lineOf(path),
    })),
  }));
  return { pods, objects: search.objects };
}

interface FoundPod {
  readonly owner: Owner;
  readonly pod: PodTemplate;
  readonly path: Steps;
}

class Search {
  readonly #file: string;
  readonly #line: number;
  readonly found: FoundPod[] = [];
  objects = 0;

  constructor(file: string, line: number) {
    this.#file = file;
    this.#line = line;
  }

  walk(value: unknown, path: Steps, owner: Owner): void {
    if (path.length > maxDepth) return;
    if (Array.isArray(value)) {
      for (const [index, each] of value.entries()) this.walk(each, [...path, index], owner);
      return;
    }
    if (!isRecord(value)) return;
    const list = listItems(value);
    if (list) {
      this.objects += 1;
      for (const [index, item] of list.entries()) this.walk(item, [...path, 'items', index], owner);
      return;
    }
    const own = ownerOf(value) ?? owner;
    if (own !== owner) {
      this.objects += 1;
      if (this.#addWorkload(value, path, own)) return;
    }
    if (isPodSpec(value) && this.#addSpec(value, path, own)) return;
    for (const [key, each] of Object.entries(value)) this.walk(each, [...path, key], own);
  }

  /** @returns false for another kind of object */
  #addWorkload(object: JsonObject, path: Steps, owner: Owner): boolean {
    const request = creationOf(object, owner.kind, owner.namespace);
    const kind = kindOf(request);
    if (kind === 'other') return false;
    try {
      const { pod, basePath } = admittedPodOf(request, kind);
      this.found.push({ owner, pod, path: [...path, ...basePath.split('/').filter(Boolean), 'spec'] });
    } catch (error) {
      if (!(error instanceof InvalidObject)) throw error;
      const name = cell(`${owner.kind}/${owner.name}`);
      throw new UsageError(`${this.#file}:${this.#line}: ${name}: ${error.message}`);
    }
    return true;
  }

  /** @returns false for an object that only looks like a pod spec */
  #addSpec(spec: JsonObject, path: Steps, owner: Owner): boolean {
    try {
      this.found.push({ owner, pod: templateOf({ spec }, ''), path });
      return true;
    } catch (error) {
      if (error instanceof InvalidObject) return false;
      throw error;
    }
  }
}

/** References such as `scaleTargetRef` have a kind too, but no metadata. */
function ownerOf({ apiVersion, kind, metadata }: JsonObject): Owner | undefined {
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string') return undefined;
  // `metadata:` without fields is null in YAML.
  const fields = metadata === null ? {} : metadata;
  if (!isRecord(fields)) return undefined;
  const text = (field: string): string => {
    const value = fields[field];
    return typeof value === 'string' ? value : '';
  };
  return { kind, namespace: text('namespace'), name: text('name') || text('generateName') };
}

function isPodSpec({ containers }: JsonObject): boolean {
  if (!Array.isArray(containers)) return false;
  return containers.some((each: unknown) => isRecord(each) && typeof each['image'] === 'string');
}

interface FoundImage {
  readonly image: string;
  readonly usedBy: string;
  readonly path: Steps;
}

/** The images that `imagesOf` finds, each where it is written. */
function imagesIn(spec: PodSpec, path: Steps): readonly FoundImage[] {
  const found: FoundImage[] = [];
  const lists = { initContainers: spec.initContainers ?? [], containers: spec.containers };
  for (const [list, all] of Object.entries(lists))
    for (const [index, { image, name }] of all.entries())
      if (image) found.push({ image, usedBy: name, path: [...path, list, index, 'image'] });
  for (const [index, { image, name }] of (spec.volumes ?? []).entries())
    if (image?.reference)
      found.push({
        image: image.reference,
        usedBy: name,
        path: [...path, 'volumes', index, 'image', 'reference'],
      });
  return found;
}
