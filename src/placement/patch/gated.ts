/**
 * The patch of a pod that waits behind our gate: one JSON patch sets the placement, takes the gate away and brings the
 * record up to date. What may change on a gated pod is narrower than at admission (KEP-3838, kubernetes
 * pkg/apis/core/validation `ValidatePodUpdate`), and the old pod is what counts, so gate and placement go together:
 *
 * - nodeSelector gains keys; a value never changes.
 * - Required terms: expressions are appended to those that are there (`gated-terms.ts`). Where there are none, terms are made.
 * - Preferred terms are free. Tolerations are added, never taken away.
 *
 * So what an earlier call added stays, and the narrower requirement stands beside it.
 *
 * The first operation writes the resource version that was decided upon: where the pod has changed since, the API server
 * answers 409. (A `test` that fails could not be told from a patch that is broken.)
 */
import type { NodeSelectorRequirement, Pod } from '../../kube/api/objects.ts';
import { additionsOf } from './additions.ts';
import { own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { Added, Operation, PlacementDecision } from '../decision.ts';
import { gatedTerms } from './gated-terms.ts';
import type { GatedTerms, NodesOf } from './gated-terms.ts';
import { hostnameNotIn } from '../rules/node-labels.ts';
import { ownFieldsOf, sameToleration } from '../record/own-fields.ts';
import type { OwnFields } from '../record/own-fields.ts';
import { affinityOperations, preferredKey, preferredOperations, requiredKey } from './affinity.ts';
import { annotationOperations, escaped, gateOperations, preferredChange, withoutRecord } from './patch.ts';
import { lookalikesAmong, sameExpression, sameList } from '../pod/terms.ts';

type Expressions = readonly NodeSelectorRequirement[];

const specPath = '/spec';
const affinityPath = '/spec/affinity/nodeAffinity';

export interface GatedPatchOptions {
  /** How many nodes of an architecture there are; decides where a term can have only one of several. */
  readonly nodesOf?: NodesOf;
  /** False where the API server says that the pod has no room for another annotation. */
  readonly withRecord?: boolean;
}

/**
 * Writes a decision on a gated pod as JSON patch.
 * @param pod the very object that was decided, with its resource version; values of the patch share parts with it
 * @param decision of any outcome but `denied`, which has no meaning for a pod that exists
 * @returns operations in the order to apply; our gate is gone after them
 */
export function patchGatedPod(
  pod: Pod,
  decision: PlacementDecision,
  { nodesOf, withRecord = true }: GatedPatchOptions = {},
): Operation[] {
  if (decision.outcome === 'skipped' || decision.outcome === 'denied') return ungatedPod(pod);
  const before = withoutExclusions(decision.replaces?.added, decision.excludedNodes);
  const parts = ownFieldsOf(pod.spec, decision.replaces);
  const wanted = additionsOf(unpinnedWhereTaken(pod, decision, before), parts);
  const required = pod.spec.affinity?.nodeAffinity?.[requiredKey];
  const present = required && (required.nodeSelectorTerms ?? []);
  const terms = present && gatedTerms(present, before, wanted, decision, nodesOf);
  const added = recordedAdditions(parts, wanted, before, terms);
  return [
    ...guard(pod),
    ...nodeSelectorOperations(pod, wanted),
    ...affinity(pod, parts, wanted, terms),
    ...tolerationOperations(pod, parts, wanted),
    ...gateOperations(pod, false, specPath),
    ...(withRecord
      ? annotationOperations(pod, terms ? { ...decision, required: terms.required } : decision, added, '')
      : withoutRecord(pod, decision, '')),
  ];
}

/**
 * Takes our gate away and changes nothing else.
 * @returns operations in the order to apply
 */
export function ungatedPod(pod: Pod): Operation[] {
  return [...guard(pod), ...gateOperations(pod, false, specPath)];
}

function guard({ metadata }: Pod): Operation[] {
  const version = metadata?.resourceVersion;
  return version === undefined ? [] : [{ op: 'replace', path: '/metadata/resourceVersion', value: version }];
}

/**
 * A record has one list of nodes that are left out. Where it is not the one that is wanted now, both have to stand in the
 * pod, and the older counts as the pod's own.
 */
function withoutExclusions(added: Added | undefined, wanted: readonly string[]): Added | undefined {
  if (added === undefined || added.excludedNodes.length === 0) return added;
  if (sameList(added.excludedNodes, wanted, (a, b) => a === b)) return added;
  const { terms, match } = added;
  const rest = terms.map((list) => list.slice(0, -1)).filter((list) => list.length > 0);
  return { ...added, excludedNodes: [], terms: rest, match: match.slice(0, -1) };
}

/** A hard preference whose key in the nodeSelector is taken is written as an expression. */
function unpinnedWhereTaken(
  pod: Pod,
  decision: PlacementDecision,
  before: Added | undefined,
): PlacementDecision {
  const pinned = own(pod.spec.nodeSelector, keys.architectureLabel);
  if (decision.preferenceMode === 'soft' || pinned === undefined) return decision;
  const isSame = before?.pinned === pinned && decision.preferred[0]?.architecture === pinned;
  return isSame ? decision : { ...decision, preferred: [] };
}

function nodeSelectorOperations(pod: Pod, { pinned }: Added): Operation[] {
  const { nodeSelector } = pod.spec;
  if (pinned === undefined || own(nodeSelector, keys.architectureLabel) !== undefined) return [];
  if (!nodeSelector)
    return [{ op: 'add', path: `${specPath}/nodeSelector`, value: { [keys.architectureLabel]: pinned } }];
  return [{ op: 'add', path: `${specPath}/nodeSelector/${escaped(keys.architectureLabel)}`, value: pinned }];
}

function affinity(pod: Pod, parts: OwnFields, wanted: Added, terms: GatedTerms | undefined): Operation[] {
  const preferred = preferredChange(parts, wanted);
  const nodeAffinity = pod.spec.affinity?.nodeAffinity;
  if (terms === undefined || !nodeAffinity)
    return affinityOperations(pod.spec, parts, wanted, preferred, specPath);
  const list = nodeAffinity[requiredKey]?.nodeSelectorTerms ?? [];
  const appended = list.flatMap(({ matchExpressions }, index): Operation[] => {
    const expressions = terms.appended[index] ?? [];
    const path = `${affinityPath}/${requiredKey}/nodeSelectorTerms/${index}/matchExpressions`;
    if (expressions.length === 0) return [];
    if (!matchExpressions) return [{ op: 'add', path, value: expressions }];
    return expressions.map((value) => ({ op: 'add', path: `${path}/-`, value }));
  });
  return [...appended, ...preferredOperations(nodeAffinity, preferred, `${affinityPath}/${preferredKey}`)];
}

function missingTolerations(parts: OwnFields, wanted: Added): Added['tolerations'] {
  const { ours } = parts.tolerations;
  return wanted.tolerations.filter((toleration) => !ours.some((other) => sameToleration(other, toleration)));
}

function tolerationOperations(pod: Pod, parts: OwnFields, wanted: Added): Operation[] {
  const missing = missingTolerations(parts, wanted);
  const path = `${specPath}/tolerations`;
  if (missing.length === 0) return [];
  if (!pod.spec.tolerations) return [{ op: 'add', path, value: missing }];
  return missing.map((value) => ({ op: 'add', path: `${path}/-`, value }));
}

/** What was added by now, by this call and those before, so that the next call takes all of it for ours. */
function recordedAdditions(
  parts: OwnFields,
  wanted: Added,
  before: Added | undefined,
  terms: GatedTerms | undefined,
): Added {
  const { excludedNodes } = wanted;
  const [others] = hostnameNotIn(excludedNodes);
  // The record has it apart, as the last one of each list.
  const ordered = (list: Expressions): Expressions =>
    others && list.length > 0 ? [...list.filter((each) => !sameExpression(each, others)), others] : list;
  const { terms: all, match } = terms ?? wanted;
  const lists = { terms: all.map(ordered), match: ordered(match) };
  return {
    ...lists,
    excludedNodes,
    lookalikes: lookalikesAmong(parts.terms, lists),
    made: terms === undefined ? wanted.made : (before?.made ?? false),
    preferred: wanted.preferred,
    tolerations: [...parts.tolerations.ours, ...missingTolerations(parts, wanted)],
    pinned: wanted.pinned ?? before?.pinned,
  };
}
