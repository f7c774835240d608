/**
 * The plan of a patch: how each scheduling field of a pod changes, and the new record.
 *
 * - At admission, additions of an earlier call that no longer apply are removed, and what widening removed is
 *   put back.
 * - A pod that waits behind the gate accepts fewer changes (KEP-3838, kubernetes pkg/apis/core/validation
 *   `ValidatePodUpdate`), so its requirement only narrows. The nodeSelector gains keys, and no value changes.
 *   Expressions are appended to the present required terms, or terms are made if there are none. Tolerations
 *   are added and never removed. Preferred terms may change. The record then has the old and the new
 *   additions.
 */
import type {
  NodeSelectorTerm,
  Pod,
  PodTemplate,
  PreferredSchedulingTerm,
  Toleration,
} from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import type { Added, OwnFields, PlacementDecision, Split } from '../decision.ts';
import { hostnameNotIn, sameToleration } from '../pod/expressions.ts';
import { itemsBeyond, sameExpression, type Expressions } from '../pod/terms.ts';
import { lookalikesAmong, samePreferred } from '../record/own-fields.ts';
import { summaryOf } from '../record/summary.ts';
import { isUpperBound, recordThatFits, unwritten, type WrittenRecord } from '../record/write.ts';
import { additionsOf, addsNothing, extendTerms, nothingAdded, type TermsChange } from './additions.ts';
import { narrowTerms, type NarrowedTerms, type NodesOf } from './narrow-terms.ts';

export interface ListChange<Item> {
  readonly kind: 'append' | 'set';
  readonly items: readonly Item[];
}

export interface Plan extends WrittenRecord {
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly terms: TermsChange;
  readonly preferred: ListChange<PreferredSchedulingTerm>;
  readonly tolerations: ListChange<Toleration>;
  readonly gate: boolean;
}

export interface GatedPlanOptions {
  /** Nodes of an architecture; decides if a term can have only one of several groups. */
  readonly nodesOf?: NodesOf;
  /** False if the API server refused the annotation for its size. */
  readonly withRecord?: boolean;
}

export function admissionPlan(pod: Pod | PodTemplate, decision: PlacementDecision, fields: OwnFields): Plan {
  const { gate, outcome } = decision;
  const isPod = decision.template === undefined;
  const wanted = additionsOf(decision, fields);
  // People ask why a pod with an unknown image was not placed.
  const isAllowed = isPod && outcome === 'allowed-unknown';
  const needsRecord = gate || isAllowed || !addsNothing(wanted) || isUpperBound(decision, wanted);
  const summary = needsRecord && isPod ? summaryOf(decision) : undefined;
  const written = needsRecord ? recordThatFits(pod, decision, wanted, summary) : unwritten;
  const { record } = written;
  // Without a record, additions to a gated pod would count as its own once its images are known.
  const added = gate && record === undefined ? nothingAdded : wanted;
  return {
    nodeSelector: pinnedTo(added.pinned, fields.nodeSelector),
    terms: extendTerms(requiredTermsOf(pod), fields.terms, { ...added, isRecorded: record !== undefined }),
    preferred: changeOf(fields.preferred, added.preferred, samePreferred),
    tolerations: changeOf(fields.tolerations, added.tolerations, sameToleration),
    gate,
    ...(added === wanted ? written : recordThatFits(pod, decision, added, summary)),
  };
}

export function gatedPlan(
  pod: Pod,
  decision: PlacementDecision,
  fields: OwnFields,
  { nodesOf, withRecord = true }: GatedPlanOptions,
): Plan {
  const earlier = decision.replaces?.added;
  const pinned = own(pod.spec.nodeSelector, keys.architectureLabel);
  const wanted = additionsOf(withoutPinIfTaken(decision, pinned, earlier), fields);
  const present = requiredTermsOf(pod);
  const narrowed = present && narrowTerms(present, earlier, wanted, decision, nodesOf);
  const tolerations = itemsBeyond(fields.tolerations.added, wanted.tolerations, sameToleration);
  const added = {
    ...wanted,
    ...combinedTerms(fields, wanted, earlier, narrowed),
    tolerations: [...fields.tolerations.added, ...tolerations],
    pinned: wanted.pinned ?? earlier?.pinned,
  };
  const decided = narrowed ? { ...decision, required: narrowed.required } : decision;
  return {
    nodeSelector: pinnedTo(pinned ?? wanted.pinned, pod.spec.nodeSelector ?? {}),
    terms: narrowed
      ? { kind: 'append', lists: narrowed.appended }
      : extendTerms(undefined, fields.terms, { ...wanted, isRecorded: true }),
    preferred: changeOf(fields.preferred, wanted.preferred, samePreferred),
    tolerations: { kind: 'append', items: tolerations },
    gate: false,
    // Also without additions: people ask why the pod was placed as it was.
    ...(withRecord ? recordThatFits(pod, decided, added, summaryOf(decided)) : unwritten),
  };
}

function pinnedTo(architecture: string | undefined, nodeSelector: OwnFields['nodeSelector']) {
  return architecture === undefined
    ? nodeSelector
    : { ...nodeSelector, [keys.architectureLabel]: architecture };
}

function requiredTermsOf({ spec }: Pod | PodTemplate): readonly NodeSelectorTerm[] | undefined {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required ? (required.nodeSelectorTerms ?? []) : undefined;
}

function changeOf<Item>(
  { own: theirs, added }: Split<Item>,
  wanted: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): ListChange<Item> {
  const isStale = added.some((item) => !wanted.some((other) => same(item, other)));
  if (isStale) return { kind: 'set', items: [...theirs, ...wanted] };
  return { kind: 'append', items: itemsBeyond(added, wanted, same) };
}

/** If the nodeSelector has an architecture already, a hard preference is written as an expression. */
function withoutPinIfTaken(
  decision: PlacementDecision,
  pinned: string | undefined,
  earlier: Added | undefined,
): PlacementDecision {
  if (pinned === undefined) return decision;
  const isSame = earlier?.pinned === pinned && decision.preferred[0]?.architecture === pinned;
  return isSame ? decision : { ...decision, preferred: [] };
}

/** The additions of this call and of earlier ones to the required terms. */
function combinedTerms(
  { terms: own }: OwnFields,
  wanted: Added,
  earlier: Added | undefined,
  narrowed: NarrowedTerms | undefined,
): Pick<Added, 'terms' | 'match' | 'lookalikes' | 'made'> {
  const [exclusion] = hostnameNotIn(wanted.excludedNodes);
  // The record has the exclusion apart, as the last one of each list.
  const ordered = (list: Expressions): Expressions =>
    exclusion ? [...list.filter((each) => !sameExpression(each, exclusion)), exclusion] : list;
  const all = narrowed ?? wanted;
  const lists = { terms: all.terms.map(ordered), match: ordered(all.match) };
  const made = narrowed === undefined ? wanted.made : (earlier?.made ?? false);
  return { ...lists, lookalikes: lookalikesAmong(own, lists), made };
}
