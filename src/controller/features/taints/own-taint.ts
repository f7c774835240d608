/**
 * Which taints of a node are ours, and the patch that adds or removes one. The patch also records our taint's
 * key in an annotation, so a taint with the same key from a cloud provider or a person stays. The annotation
 * alone proves nothing: a kubelet can write it. So only taints with a key of ours and an architecture as value
 * are ours. Those with our prefix and the node's architecture are ours even if a kubelet set them
 * (`--register-with-taints`).
 *
 * `spec.taints` is one atomic list to every kind of patch but a JSON patch, which names its items by
 * position. So the version of the node guards the patch.
 */
import { architectureOf } from '../../../nodes/classify.ts';
import { guardedPatch } from '../../../kube/api/change.ts';
import type { KubeClient, Patch } from '../../../kube/api/client.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import type { KubeObject, Node, Taint } from '../../../kube/api/objects.ts';
import { knownArchitectures } from '../../../names/architecture.ts';
import { own } from '../../../names/values.ts';
import type { Configuration } from '../../../policy/configuration/configuration.ts';
import { taintAnnotation, type CachedNode } from '../../state/cached.ts';

export type TaintSettings = Pick<Configuration, 'taintArchitectures' | 'taintKey'>;

const ownPrefix = 'arch.example/';
const effect = 'NoSchedule';

export function taintFor(key: string, architecture: string): Taint {
  return { key, value: architecture, effect };
}

/** Whether the node has the taint, and no other of the same key. */
export function hasRightTaint(taints: readonly Taint[], wanted: Taint): boolean {
  const [first, ...others] = taints.filter(({ key }) => key === wanted.key);
  return first !== undefined && others.length === 0 && sameTaint(first, wanted);
}

/** Our taints on a node, wanted or not. @param keys of our taints */
export function ownTaints(
  { ownTaintKey, architecture, taints }: Pick<CachedNode, 'ownTaintKey' | 'architecture' | 'taints'>,
  keys: readonly string[],
): readonly Taint[] {
  return taints.filter((taint) => {
    const { key, value = '' } = taint;
    if (taint.effect !== effect || value === '') return false;
    const hasPrefix = key.startsWith(ownPrefix);
    const isArchitecture = value === architecture || knownArchitectures.has(value);
    if (key === ownTaintKey) return isArchitecture && (hasPrefix || keys.includes(key));
    return hasPrefix && keys.includes(key) && value === architecture;
  });
}

/**
 * The patch that gives a node, as just read, our wanted taint; `undefined`: the node is right already.
 * @param wanted `undefined`: none of ours
 */
export function taintPatch(
  node: Node,
  wanted: Taint | undefined,
  keys: readonly string[],
): Patch | undefined {
  const { metadata: { annotations } = {}, spec: { taints = [] } = {} } = node;
  const recorded = own(annotations, taintAnnotation);
  const ours = ownTaints({ ownTaintKey: recorded, architecture: architectureOf(node), taints }, keys);
  const isThere = wanted !== undefined && taints.some((taint) => sameTaint(taint, wanted));
  const isWrong = (taint: Taint): boolean =>
    taint.key === wanted?.key ? !sameTaint(taint, wanted) : ours.includes(taint);
  const wrong = taints.flatMap((taint, index) => (isWrong(taint) ? [index] : []));
  // A correct taint that someone else set is not ours to remove later.
  const isOurs = !isThere || recorded === wanted.key;
  const operations: object[] = [
    // From the end, so that the positions of the others stay.
    ...wrong.toReversed().map((index) => ({ op: 'remove', path: `/spec/taints/${index}` })),
    ...(wanted === undefined || isThere ? [] : [addition('/spec/taints', taints, wanted)]),
    ...recording(annotations, recorded, isOurs ? wanted?.key : undefined),
  ];
  return operations.length === 0 ? undefined : guardedPatch(node, operations);
}

export function addition(path: string, list: readonly object[], value: object): object {
  return list.length === 0 ? { op: 'add', path, value: [value] } : { op: 'add', path: `${path}/-`, value };
}

function recording(
  annotations: Readonly<Record<string, string>> | undefined,
  recorded: string | undefined,
  record: string | undefined,
): readonly object[] {
  if (recorded === record) return [];
  const path = `/metadata/annotations/${taintAnnotation.replace('/', '~1')}`;
  if (record === undefined) return [{ op: 'remove', path }];
  return annotations === undefined
    ? [{ op: 'add', path: '/metadata/annotations', value: { [taintAnnotation]: record } }]
    : [{ op: 'add', path, value: record }];
}

function sameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && (a.value ?? '') === (b.value ?? '') && a.effect === b.effect;
}

/**
 * Annotation of archwright's Lease: the keys of the taints that it has set, which are its own after `taintKey`
 * has changed. A node's annotation alone may not say so: a compromised kubelet can write it.
 */
const taintKeysAnnotation = 'arch.example/taint-keys';

/** More than anyone changes `taintKey`; the oldest go. */
const maxKeys = 8;

export function recordedKeys(lease: KubeObject | undefined): readonly string[] {
  const text = own(lease?.metadata?.annotations, taintKeysAnnotation) ?? '';
  return text.split(',').filter(Boolean).slice(0, maxKeys);
}

/**
 * Every key of archwright's taints. The current one is recorded before it is first used. @throws KubeError
 * @param path of archwright's Lease
 */
export async function knownKeys(
  client: KubeClient,
  path: string,
  { taintKey, taintArchitectures }: TaintSettings,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lease = await ignoring('not-found', client.get<KubeObject>(path, { signal }));
  const recorded = recordedKeys(lease);
  const all = [taintKey, ...recorded.filter((key) => key !== taintKey)].slice(0, maxKeys);
  if (lease === undefined || taintArchitectures.length === 0 || recorded.includes(taintKey)) return all;
  const annotations = { [taintKeysAnnotation]: all.join(',') };
  await client.patch(path, { type: 'merge', body: { metadata: { annotations } } }, { signal });
  return all;
}
