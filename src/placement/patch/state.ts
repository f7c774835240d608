/**
 * What people see of a decision: the label `arch.example/placement-state`, for `kubectl get pods -l`, and the annotation
 * `arch.example/summary`. They are part of patches that are sent anyway. Only pods have them: in a template they would be changes of their own.
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

export interface ShownState {
  readonly label: string;
  readonly summary: string | undefined;
}

const labelsPath = '/metadata/labels';
const labelPath = `${labelsPath}/${keys.placementState.replace('/', '~1')}`;
const summaryPath = `/metadata/annotations/${keys.summary.replace('/', '~1')}`;

export function shownState(
  { outcome }: Pick<PlacementDecision, 'outcome'>,
  summary: string | undefined,
): ShownState {
  return { label: states[outcome] ?? 'placed', summary };
}

/** After the record, which adds absent metadata and annotations. @param shown `undefined`: nothing */
export function stateOperations(
  { metadata }: Pick<Pod, 'metadata'>,
  shown: ShownState | undefined,
): Operation[] {
  return [...summaryOperations(metadata, shown?.summary), ...labelOperations(metadata, shown?.label)];
}

/** Of a pod that exists: only what admission wrote is changed. */
export function changedStateOperations(
  { metadata }: Pick<Pod, 'metadata'>,
  shown: ShownState | undefined,
): Operation[] {
  const hasSummary = own(metadata?.annotations, keys.summary) !== undefined;
  const isLabeled = own(metadata?.labels, keys.placementState) !== undefined;
  return [
    ...(hasSummary ? summaryOperations(metadata, shown?.summary) : []),
    ...(isLabeled ? labelOperations(metadata, shown?.label) : []),
  ];
}

function summaryOperations(metadata: Pod['metadata'], summary: string | undefined): Operation[] {
  if (summary === own(metadata?.annotations, keys.summary)) return [];
  if (summary === undefined) return [{ op: 'remove', path: summaryPath }];
  return [{ op: 'add', path: summaryPath, value: summary }];
}

function labelOperations(metadata: Pod['metadata'], label: string | undefined): Operation[] {
  const labels = metadata?.labels;
  if (label === own(labels, keys.placementState)) return [];
  if (label === undefined) return [{ op: 'remove', path: labelPath }];
  if (labels) return [{ op: 'add', path: labelPath, value: label }];
  return [{ op: 'add', path: labelsPath, value: { [keys.placementState]: label } }];
}
