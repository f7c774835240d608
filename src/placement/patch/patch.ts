/** The patch of a decision, for an admission or for a pod that waits behind the gate. */
import type { Pod, PodTemplate } from '../../kube/api/objects.ts';
import type { Operation, Outcome, PlacementDecision } from '../decision.ts';
import { entryOperations, gateOperations, operationsOf } from './operations.ts';
import { admissionPlan, gatedPlan, type GatedPlanOptions } from './plan.ts';
import { own as ownOf } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';

/**
 * The patch of an admission, in the order to apply. Its values share parts with the pod.
 * @param basePath path of the pod in the patched object, such as `/spec/template` for a DaemonSet
 */
export function patchPod(pod: Pod | PodTemplate, decision: PlacementDecision, basePath = ''): Operation[] {
  const { outcome, template, own } = decision;
  if (outcome === 'denied' || template === 'workload') return [];
  // A skipped pod must not keep the gate, because nothing would remove it later.
  const isPod = template === undefined && basePath === '';
  const show = (state: ShownState): Operation[] => (isPod ? stateOperations(pod, state, true) : []);
  if (own === undefined) return [...gateOperations(pod, false, `${basePath}/spec`), ...show({})];
  const plan = admissionPlan(pod, decision, own);
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
  const { outcome, own, replaces } = decision;
  if (outcome === 'denied' || own === undefined) return ungatedPod(pod);
  const plan = gatedPlan(pod, decision, own, options);
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
  const changesSummary = mayAdd || ownOf(annotations, keys.summary) !== undefined;
  const changesLabel = mayAdd || ownOf(labels, keys.placementState) !== undefined;
  return [
    ...(changesSummary
      ? entryOperations(annotations ?? {}, '/metadata/annotations', keys.summary, summary)
      : []),
    ...(changesLabel ? entryOperations(labels, '/metadata/labels', keys.placementState, label) : []),
  ];
}
