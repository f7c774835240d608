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
import type { Pod, PodSpec, PodTemplate } from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import type { Added, OwnFields, PlacementDecision, Split } from '../decision.ts';
import { hostnameNotIn, sameToleration } from '../pod/expressions.ts';
import { itemsBeyond, requiredTermsOf, sameExpression, type Expressions, type Terms } from '../pod/terms.ts';
import { lookalikesAmong, samePreferred } from '../record/own-fields.ts';
import { isUpperBound, recordThatFits, summaryOf, unwritten, type WrittenRecord } from '../record/write.ts';
import { additionsOf, addsNothing, extendTerms, nothingAdded } from './additions.ts';
import { narrowTerms, type NarrowedTerms } from './narrow-terms.ts';

/** The scheduling fields that the pod gets. One that does not change is the same object as in the pod. */
export interface Plan extends WrittenRecord {
  readonly nodeSelector: PodSpec['nodeSelector'] | undefined;
  readonly affinity: PodSpec['affinity'] | undefined;
  readonly tolerations: PodSpec['tolerations'] | undefined;
  readonly gate: boolean;
}

export interface GatedPlanOptions {
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
  const { spec } = pod;
  const terms = extendTerms(requiredTermsOf(spec), fields.terms, {
    ...added,
    isRecorded: record !== undefined,
  });
  return {
    nodeSelector: pinnedTo(spec, added.pinned, fields.nodeSelector),
    affinity: affinityOf(spec, terms, fields, added),
    tolerations: changed(spec.tolerations, fields.tolerations, added.tolerations, sameToleration),
    gate,
    ...(added === wanted ? written : recordThatFits(pod, decision, added, summary)),
  };
}

export function gatedPlan(
  pod: Pod,
  decision: PlacementDecision,
  fields: OwnFields,
  { withRecord = true }: GatedPlanOptions,
): Plan {
  const earlier = decision.replaces?.added;
  const pinned = own(pod.spec.nodeSelector, keys.architectureLabel);
  // If the nodeSelector has an architecture already, a hard preference is written as an expression.
  const isOurs = earlier?.pinned === pinned && decision.preferred[0]?.architecture === pinned;
  const isTaken = pinned !== undefined && !isOurs;
  const wanted = additionsOf(isTaken ? { ...decision, preferred: [] } : decision, fields);
  const present = requiredTermsOf(pod.spec);
  const narrowed = present && narrowTerms(present, earlier, wanted, decision);
  const terms = narrowed
    ? narrowed.extended
    : extendTerms(undefined, fields.terms, { ...wanted, isRecorded: true });
  const earlierTolerations = fields.tolerations.added;
  const tolerations = itemsBeyond(earlierTolerations, wanted.tolerations, sameToleration);
  const added = {
    ...wanted,
    ...combinedTerms(fields, wanted, earlier, narrowed),
    tolerations: [...earlierTolerations, ...tolerations],
    pinned: wanted.pinned ?? earlier?.pinned,
  };
  const decided = narrowed ? { ...decision, required: narrowed.required } : decision;
  return {
    nodeSelector: pinnedTo(pod.spec, pinned ?? wanted.pinned, pod.spec.nodeSelector ?? {}),
    affinity: affinityOf(pod.spec, terms, fields, wanted),
    tolerations: changed(pod.spec.tolerations, fields.tolerations, added.tolerations, sameToleration),
    gate: false,
    // Also without additions: people ask why the pod was placed as it was.
    ...(withRecord ? recordThatFits(pod, decided, added, summaryOf(decided)) : unwritten),
  };
}

function pinnedTo(
  { nodeSelector: present }: PodSpec,
  architecture: string | undefined,
  theirs: OwnFields['nodeSelector'],
): PodSpec['nodeSelector'] | undefined {
  const wanted = architecture === undefined ? theirs : { ...theirs, [keys.architectureLabel]: architecture };
  const entries = Object.entries(wanted);
  const isSame =
    entries.length === Object.keys(present ?? {}).length &&
    entries.every(([key, value]) => own(present, key) === value);
  return isSame ? present : wanted;
}

function affinityOf(
  spec: PodSpec,
  terms: Terms | undefined,
  { preferred: split }: OwnFields,
  added: Pick<Added, 'preferred'>,
): PodSpec['affinity'] | undefined {
  const {
    requiredDuringSchedulingIgnoredDuringExecution: required,
    preferredDuringSchedulingIgnoredDuringExecution: present,
    ...rest
  } = spec.affinity?.nodeAffinity ?? {};
  const preferred = changed(present, split, added.preferred, samePreferred);
  if (terms === requiredTermsOf(spec) && preferred === present) return spec.affinity;
  const nodeAffinity = {
    ...rest,
    ...(terms && {
      requiredDuringSchedulingIgnoredDuringExecution: { ...required, nodeSelectorTerms: terms },
    }),
    ...(preferred?.length && { preferredDuringSchedulingIgnoredDuringExecution: preferred }),
  };
  return { ...spec.affinity, nodeAffinity };
}

/** The same list if nothing changes. Additions that no longer apply are removed. */
function changed<Item>(
  present: readonly Item[] | undefined,
  { own: theirs, added }: Split<Item>,
  wanted: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): readonly Item[] | undefined {
  const isStale = added.some((item) => !wanted.some((other) => same(item, other)));
  if (isStale) return [...theirs, ...wanted];
  const missing = itemsBeyond(added, wanted, same);
  return missing.length === 0 ? present : [...(present ?? []), ...missing];
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
