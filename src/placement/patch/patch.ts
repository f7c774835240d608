/**
 * The JSON patch of a decision, for an admission or for a pod that waits behind the gate. A patch that cannot
 * apply refuses the pod, even under `failurePolicy: Ignore`. So an operation is an `add` under an existing
 * parent, which also replaces what exists (RFC 6902, section 4.1), or a `remove` of archwright's own gate, label
 * or annotation. There is no `test`.
 */
import type { Pod, PodTemplate } from '../../kube/api/objects.ts';
import type { Operation, Outcome, PlacementDecision } from '../decision.ts';
import { admissionPlan, gatedPlan, type GatedPlanOptions, type Plan } from './plan.ts';
import { own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';

/**
 * The patch of an admission, in the order to apply. Its values share parts with the pod.
 * @param basePath path of the pod in the patched object, such as `/spec/template` for a DaemonSet
 */
export function patchPod(pod: Pod | PodTemplate, decision: PlacementDecision, basePath = ''): Operation[] {
  const { outcome, template, own: fields } = decision;
  if (outcome === 'denied' || template === 'workload') return [];
  // A skipped pod must not keep the gate, because nothing would remove it later.
  const show = (state: ShownState): Operation[] =>
    template === undefined ? stateOperations(pod, state, true) : [];
  if (fields === undefined) return [...gateOperations(pod, false, `${basePath}/spec`), ...show({})];
  const plan = admissionPlan(pod, decision, fields);
  // A record of others must not stay either: it would be taken for archwright's.
  const operations = operationsOf(pod, plan, basePath, true);
  return [...operations, ...show(plan.record === undefined ? {} : shownState(decision, plan.summary))];
}

/**
 * The patch of a gated pod: sets the placement, removes the gate and updates the record. The API server
 * validates an update against the old pod, so all of this is one patch.
 *
 * The first operation writes the resource version of the decided pod, so that the API server answers 409 if
 * the pod has changed since. (A failed `test` cannot be told from a broken patch.)
 */
export function patchGatedPod(
  pod: Pod,
  decision: PlacementDecision,
  options: GatedPlanOptions = {},
): Operation[] {
  const { outcome, own: fields, replaces } = decision;
  if (outcome === 'denied' || fields === undefined) return ungatedPod(pod);
  const plan = gatedPlan(pod, decision, fields, options);
  return [
    ...guard(pod),
    ...operationsOf(pod, plan, '', replaces !== undefined),
    ...stateOperations(pod, shownState(decision, plan.summary), false),
  ];
}

export function ungatedPod(pod: Pod): Operation[] {
  return [...guard(pod), ...gateOperations(pod, false, '/spec'), ...stateOperations(pod, {}, false)];
}

function guard({ metadata }: Pod): Operation[] {
  const version = metadata?.resourceVersion;
  return version === undefined ? [] : [{ op: 'replace', path: '/metadata/resourceVersion', value: version }];
}

/** Outcomes that are not listed: `placed`. The chart allows no other values (templates/ownrights.yaml). */
const states: Partial<Record<Outcome, string>> = {
  gated: 'gated',
  fallback: 'fallback',
  'allowed-unknown': 'fallback',
  pending: 'pending',
};

/**
 * What people see of a decision: the label `arch.example/placement-state`, for `kubectl get pods -l`, and the
 * annotation `arch.example/summary`. Only pods have them, and only in patches that are sent anyway: in a
 * template they would be changes of their own. Absent fields are removed.
 */
interface ShownState {
  readonly label?: string;
  readonly summary?: string | undefined;
}

function shownState({ outcome }: PlacementDecision, summary: string | undefined): ShownState {
  return { label: states[outcome] ?? 'placed', summary };
}

/**
 * To be applied after the record, which adds absent metadata and annotations.
 * @param mayAdd false for a pod that exists: only what admission wrote is changed
 */
export function stateOperations(
  { metadata }: Pick<Pod, 'metadata'>,
  { label, summary }: ShownState,
  mayAdd: boolean,
): Operation[] {
  const { annotations, labels } = metadata ?? {};
  const changesSummary = mayAdd || own(annotations, keys.summary) !== undefined;
  const changesLabel = mayAdd || own(labels, keys.placementState) !== undefined;
  return [
    ...(changesSummary
      ? entryOperations(annotations ?? {}, '/metadata/annotations', keys.summary, summary)
      : []),
    ...(changesLabel ? entryOperations(labels, '/metadata/labels', keys.placementState, label) : []),
  ];
}

/**
 * Writes a plan as operations, in the order to apply.
 * @param basePath path of the pod in the patched object, such as `/spec/template` for a DaemonSet
 * @param isReplacing whether the pod's record may be removed
 */
function operationsOf(
  pod: Pod | PodTemplate,
  plan: Plan,
  basePath: string,
  isReplacing: boolean,
): Operation[] {
  const { spec } = pod;
  const path = `${basePath}/spec`;
  return [
    ...fieldOperations(spec.nodeSelector, plan.nodeSelector, `${path}/nodeSelector`),
    ...fieldOperations(spec.affinity, plan.affinity, `${path}/affinity`),
    ...fieldOperations(spec.tolerations, plan.tolerations, `${path}/tolerations`),
    ...gateOperations(pod, plan.gate, path),
    ...recordOperations(pod, plan.record, basePath, isReplacing),
  ];
}

function fieldOperations(present: unknown, wanted: unknown, path: string): Operation[] {
  if (wanted === present) return [];
  // Nearly every pod has tolerations already: only further ones are sent.
  if (Array.isArray(present) && Array.isArray(wanted) && present.every((item, at) => item === wanted[at]))
    return wanted.slice(present.length).map((value: unknown) => ({ op: 'add', path: `${path}/-`, value }));
  return [{ op: 'add', path, value: wanted }];
}

function gateOperations(
  { spec }: Pick<Pod | PodTemplate, 'spec'>,
  wanted: boolean,
  specPath: string,
): Operation[] {
  const present = spec.schedulingGates ?? [];
  const others = present.filter(({ name }) => name !== keys.gate);
  if (wanted === others.length < present.length) return [];
  const value = wanted ? [...others, { name: keys.gate }] : others;
  return [{ op: 'add', path: `${specPath}/schedulingGates`, value }];
}

function recordOperations(
  { metadata }: Pod | PodTemplate,
  record: string | undefined,
  basePath: string,
  isReplacing: boolean,
): Operation[] {
  if (record === undefined && !isReplacing) return [];
  const path = `${basePath}/metadata`;
  if (record !== undefined && !metadata)
    return [{ op: 'add', path, value: { annotations: { [keys.decision]: record } } }];
  return entryOperations(metadata?.annotations, `${path}/annotations`, keys.decision, record);
}

/** Reference tokens of a JSON pointer (RFC 6901, section 3), made once: nearly every pod gets all three. */
const tokens = {
  [keys.decision]: keys.decision.replace('/', '~1'),
  [keys.summary]: keys.summary.replace('/', '~1'),
  [keys.placementState]: keys.placementState.replace('/', '~1'),
};

/** Writes or removes an entry of labels or annotations. @param path of all of them */
function entryOperations(
  present: Readonly<Record<string, string>> | null | undefined,
  path: string,
  key: keyof typeof tokens,
  value: string | undefined,
): Operation[] {
  if (own(present, key) === value) return [];
  const entry = `${path}/${tokens[key]}`;
  if (value === undefined) return [{ op: 'remove', path: entry }];
  return [present ? { op: 'add', path: entry, value } : { op: 'add', path, value: { [key]: value } }];
}
