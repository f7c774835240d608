/**
 * What people see of a decision: the label `arch.example/placement-state`, for `kubectl get pods -l`, and the
 * annotation `arch.example/summary`. They are part of patches that are sent anyway. Only pods have them: in a
 * template they would be changes of their own.
 */
import type { Pod } from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import type { Operation, Outcome, PlacementDecision } from '../decision.ts';
import { entryOperations } from './operations.ts';

/** Outcomes that are not listed: `placed`. The chart allows no other values (templates/ownrights.yaml). */
const states: Partial<Record<Outcome, string>> = {
  gated: 'gated',
  fallback: 'fallback',
  'allowed-unknown': 'fallback',
  pending: 'pending',
};

/** Absent fields are removed. */
export interface ShownState {
  readonly label?: string;
  readonly summary?: string | undefined;
}

export function shownState(
  { outcome }: Pick<PlacementDecision, 'outcome'>,
  summary: string | undefined,
): ShownState {
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
