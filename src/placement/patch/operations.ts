/**
 * The JSON patch of a plan. A patch that cannot apply refuses the pod, even under `failurePolicy: Ignore`. So
 * an operation is an `add` under an existing parent, which also replaces what exists (RFC 6902, section 4.1),
 * or a `remove` of archwright's own gate, label or annotation. There is no `test`.
 */
import type { Pod, PodTemplate } from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import type { Operation } from '../decision.ts';
import type { Plan } from './plan.ts';

/**
 * Writes a plan as operations, in the order to apply.
 * @param basePath path of the pod in the patched object, such as `/spec/template` for a DaemonSet
 * @param isReplacing whether the pod's record may be removed
 */
export function operationsOf(
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

export function gateOperations(
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
export function entryOperations(
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
