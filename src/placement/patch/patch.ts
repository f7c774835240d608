/** The patch of a decision, for an admission or for a pod that waits behind the gate. */
import type { Pod, PodTemplate } from '../../kube/api/objects.ts';
import type { Operation, PlacementDecision } from '../decision.ts';
import { gateOperations, operationsOf } from './operations.ts';
import { admissionPlan, gatedPlan, type GatedPlanOptions } from './plan.ts';
import { shownState, stateOperations, type ShownState } from './state.ts';

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
