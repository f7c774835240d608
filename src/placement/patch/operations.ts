/**
 * The JSON patch of a plan. A patch that cannot apply refuses the pod, even under `failurePolicy: Ignore`. So
 * an operation is an `add` to what exists or under an existing parent, a `replace` of what exists, or a
 * `remove` of archwright's own gate, label or annotation. There is no `test`.
 */
import type { NodeAffinity, Pod, PodSpec, PodTemplate } from '../../kube/api/objects.ts';
import { own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import type { Operation } from '../decision.ts';
import type { TermsChange } from './additions.ts';
import type { ListChange, Plan } from './plan.ts';

const requiredKey = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferredKey = 'preferredDuringSchedulingIgnoredDuringExecution';

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
  const path = `${basePath}/spec`;
  return [
    ...nodeSelectorOperations(pod.spec, plan.nodeSelector, `${path}/nodeSelector`),
    ...affinityOperations(pod.spec, plan, `${path}/affinity`),
    ...listOperations(pod.spec.tolerations, plan.tolerations, `${path}/tolerations`),
    ...gateOperations(pod, plan.gate, path),
    ...recordOperations(pod, plan.record, basePath, isReplacing),
  ];
}

function nodeSelectorOperations(
  { nodeSelector: present }: PodSpec,
  wanted: Plan['nodeSelector'],
  path: string,
): Operation[] {
  const entries = Object.entries(wanted);
  if (!present) return entries.length === 0 ? [] : [{ op: 'add', path, value: wanted }];
  if (Object.keys(present).some((key) => own(wanted, key) === undefined))
    return [{ op: 'replace', path, value: wanted }];
  return entries
    .filter(([key, value]) => own(present, key) !== value)
    .map(([key, value]) => ({ op: 'add', path: `${path}/${escaped(key)}`, value }));
}

/** The highest absent object is added whole, so that no operation depends on another one. */
function affinityOperations({ affinity }: PodSpec, { terms, preferred }: Plan, path: string): Operation[] {
  const nodeAffinity = affinity?.nodeAffinity;
  if (nodeAffinity) {
    return [
      ...termsOperations(nodeAffinity, terms, `${path}/nodeAffinity`),
      ...listOperations(nodeAffinity[preferredKey], preferred, `${path}/nodeAffinity/${preferredKey}`),
    ];
  }
  const value: NodeAffinity = {
    ...(terms.kind === 'set' ? { [requiredKey]: { nodeSelectorTerms: terms.terms } } : {}),
    ...(preferred.items.length === 0 ? {} : { [preferredKey]: preferred.items }),
  };
  if (Object.keys(value).length === 0) return [];
  if (affinity) return [{ op: 'add', path: `${path}/nodeAffinity`, value }];
  return [{ op: 'add', path, value: { nodeAffinity: value } }];
}

function termsOperations(nodeAffinity: NodeAffinity, change: TermsChange, path: string): Operation[] {
  const required = nodeAffinity[requiredKey];
  const termsPath = `${path}/${requiredKey}/nodeSelectorTerms`;
  if (change.kind === 'append') {
    return change.lists.flatMap((items, index) => {
      const present = required?.nodeSelectorTerms?.[index]?.matchExpressions;
      return listOperations(present, { kind: 'append', items }, `${termsPath}/${index}/matchExpressions`);
    });
  }
  if (change.kind === 'remove') {
    const { [requiredKey]: _, ...rest } = nodeAffinity;
    return [{ op: 'replace', path, value: rest }];
  }
  const { terms } = change;
  return required
    ? [{ op: 'replace', path: termsPath, value: terms }]
    : [{ op: 'add', path: `${path}/${requiredKey}`, value: { nodeSelectorTerms: terms } }];
}

function listOperations<Item>(
  present: readonly Item[] | null | undefined,
  { kind, items }: ListChange<Item>,
  path: string,
): Operation[] {
  if (kind === 'set') return [{ op: 'replace', path, value: items }];
  if (items.length === 0) return [];
  if (!present) return [{ op: 'add', path, value: items }];
  return items.map((value) => ({ op: 'add', path: `${path}/-`, value }));
}

export function gateOperations(pod: Pod | PodTemplate, wanted: boolean, specPath: string): Operation[] {
  const path = `${specPath}/schedulingGates`;
  const present = pod.spec.schedulingGates;
  if (!present) return wanted ? [{ op: 'add', path, value: [{ name: keys.gate }] }] : [];
  const indexes = present.flatMap((gate, index) => (gate.name === keys.gate ? [index] : []));
  // From the end, so that the other indexes stay valid.
  if (!wanted) return indexes.toReversed().map((index) => ({ op: 'remove', path: `${path}/${index}` }));
  return indexes.length > 0 ? [] : [{ op: 'add', path: `${path}/-`, value: { name: keys.gate } }];
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

/** Nearly every pod gets all three. */
const escapedKeys = {
  [keys.decision]: escaped(keys.decision),
  [keys.summary]: escaped(keys.summary),
  [keys.placementState]: escaped(keys.placementState),
};

/** Writes or removes an entry of labels or annotations. @param path of all of them */
export function entryOperations(
  present: Readonly<Record<string, string>> | null | undefined,
  path: string,
  key: keyof typeof escapedKeys,
  value: string | undefined,
): Operation[] {
  if (own(present, key) === value) return [];
  const entry = `${path}/${escapedKeys[key]}`;
  if (value === undefined) return [{ op: 'remove', path: entry }];
  return [present ? { op: 'add', path: entry, value } : { op: 'add', path, value: { [key]: value } }];
}

/** A reference token of a JSON pointer (RFC 6901, section 3). */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
