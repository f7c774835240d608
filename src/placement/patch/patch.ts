/**
 * The patch of an admission. A patch that cannot be applied refuses the pod, even under `failurePolicy: Ignore`, so each
 * operation is built by hand from what is surely there: `add` to what exists or under a parent that exists, `replace` of
 * what exists, and `remove` of nothing but our own gate and annotation. There is no `test`.
 *
 * What an earlier call added and what is still wanted stays where it is; only a difference is written.
 */
import type { Pod, PodTemplate } from '../../kube/api/objects.ts';
import { addsNothing, additionsOf, nothingAdded } from './additions.ts';
import { own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { Added, Operation, PlacementDecision } from '../decision.ts';
import { ownFieldsOf, samePreferred, sameToleration } from '../record/own-fields.ts';
import type { OwnFields, Split } from '../record/own-fields.ts';
import { affinityOperations } from './affinity.ts';
import { recordThatFits } from '../record/write.ts';

/**
 * Writes a decision as JSON patch.
 * @param pod the very object that was decided; values of the patch share parts with it, so neither may be changed
 * @param options `basePath`: where the pod is in the patched object, such as `/spec/template` for a DaemonSet
 * @returns operations in the order to apply; empty where nothing changes
 */
export function patchPod(
  pod: Pod | PodTemplate,
  decision: PlacementDecision,
  { basePath = '' }: { readonly basePath?: string } = {},
): Operation[] {
  if (decision.outcome === 'denied' || decision.template === 'workload') return [];
  const spec = `${basePath}/spec`;
  // A pod that is left alone must not be held either: nobody else would open our gate.
  if (decision.outcome === 'skipped') return gateOperations(pod, false, spec);
  const parts = ownFieldsOf(pod.spec, decision.replaces);
  const added = additionsWithRoom(pod, decision, additionsOf(decision, parts));
  return [
    ...nodeSelectorOperations(pod, parts, added, spec),
    ...affinityOperations(pod.spec, parts, added, preferredChange(parts, added), spec),
    ...tolerationOperations(pod, parts, added, spec),
    ...gateOperations(pod, decision.gate, spec),
    ...annotationOperations(pod, decision, added, basePath),
  ];
}

/**
 * Behind the gate everything counts for the pod's own that no record says is ours, and the pod would keep it as its own
 * constraint when its images are known. Where there is no room for a record, the gate has to be enough.
 */
function additionsWithRoom(pod: Pod | PodTemplate, decision: PlacementDecision, added: Added): Added {
  return decision.gate && recordThatFits(pod, decision, added) === undefined ? nothingAdded : added;
}

/** How a list of the pod changes. */
export interface ListChange<Item> {
  /** Set where something of ours has to go: the whole list anew. */
  readonly whole?: readonly Item[];
  readonly append: readonly Item[];
}

/** What to do to have what is wanted in the place of what we added before. */
function changeOf<Item>(
  { own: theirs, ours }: Split<Item>,
  wanted: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): ListChange<Item> {
  const stale = ours.some((item) => !wanted.some((other) => same(item, other)));
  if (stale) return { whole: [...theirs, ...wanted], append: [] };
  return {
    append: ours.length === 0 ? wanted : wanted.filter((item) => !ours.some((other) => same(item, other))),
  };
}

export function preferredChange(parts: OwnFields, added: Added): ListChange<Added['preferred'][number]> {
  return changeOf(parts.preferred, added.preferred, samePreferred);
}

function nodeSelectorOperations(
  pod: Pod | PodTemplate,
  parts: OwnFields,
  added: Added,
  spec: string,
): Operation[] {
  const present = pod.spec.nodeSelector;
  const value = own(present, keys.architectureLabel);
  const theirs = own(parts.nodeSelector, keys.architectureLabel);
  const wanted = added.pinned ?? theirs;
  if (wanted === value) return [];
  if (wanted === undefined)
    return [{ op: 'replace', path: `${spec}/nodeSelector`, value: parts.nodeSelector }];
  if (!present)
    return [{ op: 'add', path: `${spec}/nodeSelector`, value: { [keys.architectureLabel]: wanted } }];
  return [{ op: 'add', path: `${spec}/nodeSelector/${escaped(keys.architectureLabel)}`, value: wanted }];
}

function tolerationOperations(
  pod: Pod | PodTemplate,
  parts: OwnFields,
  added: Added,
  spec: string,
): Operation[] {
  const path = `${spec}/tolerations`;
  const { whole, append } = changeOf(parts.tolerations, added.tolerations, sameToleration);
  if (whole) return [{ op: 'replace', path, value: whole }];
  if (append.length === 0) return [];
  if (!pod.spec.tolerations) return [{ op: 'add', path, value: append }];
  return append.map((value) => ({ op: 'add', path: `${path}/-`, value }));
}

export function gateOperations(pod: Pod | PodTemplate, wanted: boolean, spec: string): Operation[] {
  const path = `${spec}/schedulingGates`;
  const present = pod.spec.schedulingGates;
  if (!present) return wanted ? [{ op: 'add', path, value: [{ name: keys.gate }] }] : [];
  const indexes = present.flatMap((gate, index) => (gate.name === keys.gate ? [index] : []));
  // From the end, so that the other indexes still hold.
  if (!wanted) return indexes.toReversed().map((index) => ({ op: 'remove', path: `${path}/${index}` }));
  return indexes.length > 0 ? [] : [{ op: 'add', path: `${path}/-`, value: { name: keys.gate } }];
}

export function annotationOperations(
  pod: Pod | PodTemplate,
  decision: PlacementDecision,
  added: Added,
  basePath: string,
): Operation[] {
  const annotations = pod.metadata?.annotations;
  const path = `${basePath}/metadata/annotations`;
  const key = `${path}/${escaped(keys.decision)}`;
  const present = own(annotations, keys.decision);
  if (addsNothing(added) && !decision.gate) return withoutRecord(pod, decision, basePath);
  const value = recordThatFits(pod, decision, added);
  if (value === undefined) return withoutRecord(pod, decision, basePath);
  if (present === value) return [];
  if (annotations) return [{ op: 'add', path: key, value }];
  if (pod.metadata) return [{ op: 'add', path, value: { [keys.decision]: value } }];
  return [{ op: 'add', path: `${basePath}/metadata`, value: { annotations: { [keys.decision]: value } } }];
}

/** A record that says what is no longer true goes; one that is not believed to be ours is not ours to remove. */
export function withoutRecord(
  { metadata }: Pod | PodTemplate,
  { replaces }: PlacementDecision,
  basePath: string,
): Operation[] {
  if (replaces === undefined || own(metadata?.annotations, keys.decision) === undefined) return [];
  return [{ op: 'remove', path: `${basePath}/metadata/annotations/${escaped(keys.decision)}` }];
}

/** A reference token of a JSON pointer (RFC 6901, section 3). */
export function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
