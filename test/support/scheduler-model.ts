/**
 * A model of how the Kubernetes scheduler matches a pod to a node: nodeSelector, required node affinity,
 * taints. Written from the API documentation; it shares no code with the program, so it can check it.
 */
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
  Toleration,
} from '../../src/kube/api/objects.ts';

export interface ModelNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
}

/** Whether nodeSelector and required affinity match the node. */
export function selects(spec: PodSpec, node: ModelNode): boolean {
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) {
    if (labelOf(node, key) !== value) return false;
  }
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!required) return true;
  return (required.nodeSelectorTerms ?? []).some((term) => termMatches(term, node));
}

export function termMatches(term: NodeSelectorTerm, node: ModelNode): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return false;
  return (
    expressions.every((requirement) => requirementMatches(requirement, labelOf(node, requirement.key))) &&
    fields.every((field) => field.key === 'metadata.name' && requirementMatches(field, node.name))
  );
}

/** Whether the pod's author chose the node, or only the node's architecture. */
export function chosenByPerson({ spec }: Pod, node: ModelNode): boolean {
  const keys = ['kubernetes.io/arch', 'beta.kubernetes.io/arch'];
  if (keys.some((key) => Object.hasOwn(spec.nodeSelector ?? {}, key))) return true;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return (required?.nodeSelectorTerms ?? []).some(
    (term) =>
      termMatches(term, node) &&
      (term.matchFields?.some(({ operator }) => operator === 'In') ||
        choosesOne(term.matchExpressions ?? [])),
  );
}

/** Whether expressions name architectures by `In` and match at most one of otherwise equal nodes. */
export function choosesOne(expressions: readonly NodeSelectorRequirement[]): boolean {
  const about = expressions.filter(
    ({ key }) => key === 'kubernetes.io/arch' || key === 'beta.kubernetes.io/arch',
  );
  const named = about.filter(({ operator }) => operator === 'In').flatMap(({ values }) => values ?? []);
  const matching = [...new Set(named)].filter((value) =>
    about.every((each) => requirementMatches(each, value)),
  );
  return named.length > 0 && matching.length < 2;
}

function requirementMatches(
  { operator, values = [] }: NodeSelectorRequirement,
  value: string | undefined,
): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return integer(value) > integer(values[0]);
    case 'Lt':
      return integer(value) < integer(values[0]);
    default:
      return false;
  }
}

function integer(text: string | undefined): number {
  return text !== undefined && /^-?[0-9]+$/u.test(text) ? Number(text) : Number.NaN;
}

/** Whether the pod tolerates every `NoSchedule` and `NoExecute` taint of the node. */
export function tolerates(tolerations: readonly Toleration[] | null | undefined, node: ModelNode): boolean {
  return node.taints
    .filter((taint) => taint.effect !== 'PreferNoSchedule')
    .every((taint) =>
      (tolerations ?? []).some(({ key = '', operator = 'Equal', value = '', effect = '' }) => {
        if (effect !== '' && effect !== taint.effect) return false;
        if (operator === 'Exists') return key === '' || key === taint.key;
        return operator === 'Equal' && key === taint.key && value === taint.value;
      }),
    );
}

/** The API server's validation errors for the fields that placement writes. */
export function schedulingFaults(spec: PodSpec): readonly string[] {
  const faults: string[] = [];
  const affinity = spec.affinity?.nodeAffinity;
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required && !required.nodeSelectorTerms?.length) faults.push('required without terms');
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  for (const { weight } of preferred)
    if (!(Number.isInteger(weight) && weight >= 1 && weight <= 100)) faults.push('weight');
  const terms = [...(required?.nodeSelectorTerms ?? []), ...preferred.map(({ preference }) => preference)];
  for (const requirement of terms.flatMap((term) => term.matchExpressions ?? [])) {
    faults.push(...requirementFaults(requirement));
  }
  for (const value of Object.values(spec.nodeSelector ?? {}))
    if (!isLabelValue(value)) faults.push(`label ${value}`);
  for (const { key = '', operator = 'Equal', value = '' } of spec.tolerations ?? []) {
    if (operator === 'Exists' ? value !== '' : key === '' || !isLabelValue(value))
      faults.push(`toleration ${key}`);
  }
  const gates = (spec.schedulingGates ?? []).map(({ name }) => name);
  if (new Set(gates).size !== gates.length) faults.push('duplicate gate');
  return faults;
}

function requirementFaults({ key, operator, values = [] }: NodeSelectorRequirement): readonly string[] {
  const single = operator === 'Gt' || operator === 'Lt';
  const none = operator === 'Exists' || operator === 'DoesNotExist';
  if (single ? values.length !== 1 : none === values.length > 0)
    return [`${key} ${operator} ${values.length} values`];
  return values.filter((value) => !isLabelValue(value)).map((value) => `${key}: ${value}`);
}

function isLabelValue(value: string): boolean {
  return value.length <= 63 && /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/u.test(value);
}

function labelOf(node: ModelNode, key: string): string | undefined {
  return Object.hasOwn(node.labels, key) ? node.labels[key] : undefined;
}
