/**
 * Which taints of a node are ours, and the patch that puts one on or takes it off.
 *
 * A taint that we put on a node is recorded in the node's annotation in the same patch, so that it can be told from one of
 * the same key that a cloud or a person set: that one stays when ours goes. Taints with a key of our own prefix are ours
 * whoever wrote them, such as a kubelet's `--register-with-taints`, where their value is the node's architecture.
 *
 * `spec.taints` is one atomic list to every kind of patch but a JSON patch, which names its items by position. So it is
 * made from a node that was just read, and carries that node's resourceVersion: where anybody changed the node meanwhile
 * the API server answers 409 and nothing of theirs is lost.
 */
import { architectureOf } from '../../cluster/objects.ts';
import type { Patch } from '../../kube/api/client.ts';
import type { Node, Taint } from '../../kube/api/objects.ts';
import { own } from '../../names/architecture.ts';

/** Node annotation: the key of the taint that we gave it. */
export const taintAnnotation = 'arch.example/taint';

const ownPrefix = 'arch.example/';
const effect = 'NoSchedule';

/** The taint of nodes of an architecture. */
export function taintFor(key: string, architecture: string): Taint {
  return { key, value: architecture, effect };
}

/** Whether the node has the taint, and no other of the same key. */
export function hasRightTaint(taints: readonly Taint[], wanted: Taint): boolean {
  const ofKey = taints.filter(({ key }) => key === wanted.key);
  return ofKey.length === 1 && ofKey.every((taint) => sameTaint(taint, wanted));
}

/**
 * The taints of ours on a node, whether they are still wanted or not.
 * @param node its recorded key (`taintAnnotation`), architecture and taints
 * @param keys those of the settings; only the ones with our prefix tell anything by themselves
 */
export function ownTaints(
  node: {
    readonly ownTaintKey: string | undefined;
    readonly architecture: string | undefined;
    readonly taints: readonly Taint[];
  },
  keys: readonly string[],
): readonly Taint[] {
  const { ownTaintKey, architecture, taints } = node;
  return taints.filter((taint) => {
    if (taint.effect !== effect) return false;
    if (taint.key === ownTaintKey) return true;
    return (
      taint.key.startsWith(ownPrefix) &&
      keys.includes(taint.key) &&
      architecture !== undefined &&
      taint.value === architecture
    );
  });
}

/**
 * The patch that makes a node's taints right.
 * @param node just read
 * @param wanted what it shall have; `undefined`: nothing of ours
 * @param keys as for `ownTaints`
 * @returns `undefined` where nothing is to be done
 */
export function taintPatch(
  node: Node,
  wanted: Taint | undefined,
  keys: readonly string[],
): Patch | undefined {
  const { metadata, spec } = node;
  const taints = spec?.taints ?? [];
  const recorded = own(metadata?.annotations, taintAnnotation);
  const ours = ownTaints({ ownTaintKey: recorded, architecture: architectureOf(node), taints }, keys);
  const isThere = wanted !== undefined && taints.some((taint) => sameTaint(taint, wanted));
  const wrong = taints.flatMap((taint, index) => {
    if (wanted === undefined) return ours.includes(taint) ? [index] : [];
    if (taint.key === wanted.key) return sameTaint(taint, wanted) ? [] : [index];
    return ours.includes(taint) ? [index] : [];
  });
  const record = wanted === undefined ? undefined : isThere ? keptRecord(recorded, wanted) : wanted.key;
  const operations: object[] = [
    // From the end, so that the positions of the others stay.
    ...wrong.toReversed().map((index) => ({ op: 'remove', path: `/spec/taints/${index}` })),
    ...(wanted === undefined || isThere ? [] : [addition(taints, wanted)]),
    ...recording(metadata?.annotations, recorded, record),
  ];
  if (operations.length === 0) return undefined;
  const version = {
    op: 'replace',
    path: '/metadata/resourceVersion',
    value: metadata?.resourceVersion ?? '',
  };
  return { type: 'json', body: [version, ...operations] };
}

/** A right taint that we did not put there is not ours to take off again. */
function keptRecord(recorded: string | undefined, wanted: Taint): string | undefined {
  return recorded === wanted.key ? recorded : undefined;
}

function addition(taints: readonly Taint[], wanted: Taint): object {
  return taints.length === 0
    ? { op: 'add', path: '/spec/taints', value: [wanted] }
    : { op: 'add', path: '/spec/taints/-', value: wanted };
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
