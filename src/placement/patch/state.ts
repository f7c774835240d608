/**
 * The label `arch.example/placement-state`, for `kubectl get pods -l`. It is part of patches that are sent anyway. Only pods have it: in a
 * template it would be a change of its own.
 */
import type { Pod } from '../../kube/api/objects.ts';
import { own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { Operation, Outcome, PlacementDecision } from '../decision.ts';

/** Outcomes that are not listed: `placed`. The chart allows no other values (templates/ownrights.yaml). */
const states: Partial<Record<Outcome, string>> = {
  gated: 'gated',
  fallback: 'fallback',
  'allowed-unknown': 'fallback',
  pending: 'pending',
};

const labelsPath = '/metadata/labels';
const labelPath = `${labelsPath}/${keys.placementState.replace('/', '~1')}`;

export function stateOf({ outcome }: Pick<PlacementDecision, 'outcome'>): string {
  return states[outcome] ?? 'placed';
}

/** After the record, which adds absent metadata. @param state `undefined`: no label */
export function stateOperations({ metadata }: Pick<Pod, 'metadata'>, state: string | undefined): Operation[] {
  const labels = metadata?.labels;
  if (state === own(labels, keys.placementState)) return [];
  if (state === undefined) return [{ op: 'remove', path: labelPath }];
  if (labels) return [{ op: 'add', path: labelPath, value: state }];
  return [{ op: 'add', path: labelsPath, value: { [keys.placementState]: state } }];
}

/** Of a pod that exists: only a label that admission wrote is changed. */
export function changedStateOperations(pod: Pick<Pod, 'metadata'>, state: string | undefined): Operation[] {
  const isLabeled = own(pod.metadata?.labels, keys.placementState) !== undefined;
  return isLabeled ? stateOperations(pod, state) : [];
}
