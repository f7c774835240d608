/**
 * The pods to check, in files, standard input, and the manifests in directories: in workloads, other objects
 * with a pod spec (Argo, Knative), lists and arrays.
 */
import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError, listDirectory } from '../../src/files/read.ts';
import { imagesOf, type ImageUse } from '../../src/placement/pod/images.ts';
import { operatingSystemOf } from '../../src/placement/pod/terms.ts';
import type { PodSpec, PodTemplate } from '../../src/kube/api/objects.ts';
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { admittedPodOf, InvalidObject, kindOf, templateOf } from '../../src/webhook/admitted-pod.ts';
import { creationOf } from '../objects/input.ts';
import {
  listItems,
  parseDocuments,
  readText,
  texts,
  type FoundDocument,
  type Steps,
} from '../objects/documents.ts';
import { UsageError } from '../program/exit.ts';
import { cell } from '../program/table.ts';
import { choiceOf, type Choice } from '../report/exclusion.ts';

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
  readonly choice: Choice;
  readonly uses: readonly ImageUse[];
  readonly places: readonly ImagePlace[];
}

/** No repository of manifests has so many files; a directory such as `/` does. */
const maxFiles = 10_000;
const maxDirectoryDepth = 32;
const manifest = /\.(?:ya?ml|json)$/;
const kustomizations = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'];

/**
 * Reads one file after the other, and keeps only what is needed of each.
 * @param paths of files and directories; `-`: standard input
 * @param note gets what is not read, and why
 * @throws UsageError, FileError
 */
export async function podsInFiles(
  paths: readonly string[],
  stdin: NodeJS.ReadableStream,
  note: (message: string) => void,
): Promise<readonly CheckedPod[]> {
  const found: CheckedPod[] = [];
  let objects = 0;
  for (const path of paths) {
    const isDirectory = path !== '-' && (await stat(path).catch(unreadable(path))).isDirectory();
    for (const file of isDirectory ? await filesBelow(path, note) : [path]) {
      const input = await readText(file, stdin);
      // Directories also hold other files, which need not be valid YAML.
      if (isDirectory && !input.text.includes('apiVersion')) continue;
      for (const document of parseDocuments(input)) {
        if (!isDirectory && typeof document.value !== 'object')
          throw new UsageError(`${input.file}:${document.line}: is not a Kubernetes object`);
        const inDocument = podsIn(document, input.file);
        objects += inDocument.objects;
        found.push(...inDocument.pods);
      }
    }
  }
  // The program before the pipe may have failed.
  if (objects === 0) throw new UsageError('the input contains no Kubernetes object');
  return found;
}

async function filesBelow(top: string, note: (message: string) => void): Promise<readonly string[]> {
  const found: string[] = [];
  async function search(directory: string, depth: number): Promise<void> {
    const names = await listDirectory(directory, { maxEntries: maxFiles });
    if (names.includes('Chart.yaml') && names.includes('templates')) {
      note(`${directory} is not read: it is a chart; helm template ${directory} | archwright check -`);
      return;
    }
    if (kustomizations.some((name) => names.includes(name))) {
      note(
        `${directory} has a kustomization, which can change images; kustomize build ${directory} | archwright check -`,
      );
    }
    for (const name of names) {
      const path = join(directory, name);
      const stats = await lstat(path).catch(unreadable(path));
      // Links to directories could lead in circles. Hidden ones and those of packages hold no manifests.
      const isSearched = stats.isDirectory() && !name.startsWith('.') && name !== 'node_modules';
      if (isSearched && depth < maxDirectoryDepth) await search(path, depth + 1);
      else if (manifest.test(name) && (stats.isFile() || stats.isSymbolicLink())) found.push(path);
      if (found.length > maxFiles) throw new UsageError(`${top}: holds more than ${maxFiles} manifests`);
    }
  }
  await search(top, 0);
  return found;
}

function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    throw fileError(path, error);
  };
}

/** Real pod specs are 12 levels deep in a list of lists. */
const maxDepth = 40;

/**
 * @returns `objects`: how many Kubernetes objects there are, with and without pods
 * @throws UsageError for a workload that no API server would take
 */
export function podsIn(document: FoundDocument, file: string) {
  const pods: CheckedPod[] = [];
  let objects = 0;

  function add(owner: Owner, pod: PodTemplate, path: Steps): void {
    const { spec } = pod;
    const places = Array.from(imagesIn(spec, path), ({ path: at, ...use }) => {
      return { ...use, file, line: document.lineOf(at) };
    });
    pods.push({ owner, os: operatingSystemOf(spec), choice: choiceOf(pod), uses: imagesOf(spec), places });
  }

  /** @returns false for another kind of object */
  function addWorkload(object: JsonObject, path: Steps, owner: Owner): boolean {
    const request = creationOf(object, owner.kind, owner.namespace);
    const kind = kindOf(request);
    if (kind === 'other') return false;
    try {
      const { pod, basePath } = admittedPodOf(request, kind);
      add(owner, pod, [...path, ...basePath.split('/').filter(Boolean), 'spec']);
    } catch (error) {
      if (!(error instanceof InvalidObject)) throw error;
      const name = cell(`${owner.kind}/${owner.name}`);
      throw new UsageError(`${file}:${document.line}: ${name}: ${error.message}`);
    }
    return true;
  }

  /** @returns false for an object that only looks like a pod spec */
  function addSpec(spec: JsonObject, path: Steps, owner: Owner): boolean {
    try {
      add(owner, templateOf({ spec }, ''), path);
      return true;
    } catch (error) {
      if (error instanceof InvalidObject) return false;
      throw error;
    }
  }

  function walk(value: unknown, path: Steps, owner: Owner): void {
    if (path.length > maxDepth) return;
    if (Array.isArray(value)) {
      for (const [index, each] of value.entries()) walk(each, [...path, index], owner);
      return;
    }
    if (!isRecord(value)) return;
    const list = listItems(value);
    if (list) {
      objects += 1;
      for (const [index, item] of list.entries()) walk(item, [...path, 'items', index], owner);
      return;
    }
    const own = ownerOf(value) ?? owner;
    if (own !== owner) {
      objects += 1;
      if (addWorkload(value, path, own)) return;
    }
    if (isPodSpec(value) && addSpec(value, path, own)) return;
    for (const [key, each] of Object.entries(value)) walk(each, [...path, key], own);
  }

  walk(document.value, [], { kind: '', namespace: '', name: '' });
  return { pods, objects };
}

/** References such as `scaleTargetRef` have a kind too, but no metadata. */
function ownerOf({ apiVersion, kind, metadata }: JsonObject): Owner | undefined {
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string') return undefined;
  // `metadata:` without fields is null in YAML.
  if (metadata !== null && !isRecord(metadata)) return undefined;
  const { namespace = '', name, generateName = '' } = texts(metadata);
  return { kind, namespace, name: name || generateName };
}

function isPodSpec({ containers }: JsonObject): boolean {
  if (!Array.isArray(containers)) return false;
  return containers.some((each: unknown) => isRecord(each) && typeof each['image'] === 'string');
}

/** The images that `imagesOf` finds, each where it is written. */
function* imagesIn(spec: PodSpec, path: Steps) {
  for (const list of ['initContainers', 'containers'] as const)
    for (const [index, { image, name: usedBy }] of (spec[list] ?? []).entries())
      if (image) yield { image, usedBy, path: [...path, list, index, 'image'] };
  for (const [index, { image, name: usedBy }] of (spec.volumes ?? []).entries())
    if (image?.reference)
      yield { image: image.reference, usedBy, path: [...path, 'volumes', index, 'image', 'reference'] };
}
