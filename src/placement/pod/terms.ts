/**
 * Required node affinity terms of a pod. Terms are ORed, the expressions of one term are ANDed. An empty
 * term, and an empty list of terms, matches no node (kubernetes component-helpers nodeaffinity.go).
 *
 * An architecture constraint is one architecture by `In` on an architecture label, `DoesNotExist` on one
 * (nodes without an architecture), or `matchFields` with `metadata.name In`, which pins the node. `NotIn`,
 * `Exists`, `Gt`, `Lt` and `In` with several architectures only exclude: the term can still match a node that
 * cannot run the images.
 */
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from '../../kube/api/objects.ts';
import { isArchitectureKey } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import { meets } from '../../names/labels.ts';
import { defaultOs } from '../../names/platform.ts';
import { own } from '../../names/values.ts';
import type { OwnFields } from '../decision.ts';

export type Terms = readonly NodeSelectorTerm[];
export type Expressions = readonly NodeSelectorRequirement[];

const noTerms: Terms = [];

/** `undefined`: the pod has no required node affinity. */
export function requiredTermsOf({ affinity }: Pick<PodSpec, 'affinity'>): Terms | undefined {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required ? (required.nodeSelectorTerms ?? noTerms) : undefined;
}

export function isEmptyTerm(term: NodeSelectorTerm): boolean {
  return !term.matchExpressions?.length && !term.matchFields?.length;
}

export function pinsNode(term: NodeSelectorTerm): boolean {
  return term.matchFields?.some(isNodeName) ?? false;
}

/** Whether a person chose single nodes: by nodeSelector, or in a required term. */
export function namesNode({ nodeSelector, terms }: Pick<OwnFields, 'nodeSelector' | 'terms'>): boolean {
  if (own(nodeSelector, keys.hostnameLabel) !== undefined) return true;
  const isHostname = ({ key, operator }: NodeSelectorRequirement): boolean =>
    key === keys.hostnameLabel && operator === 'In';
  return terms?.some((term) => pinsNode(term) || term.matchExpressions?.some(isHostname)) ?? false;
}

/** Whether a pod must run on the architecture of other pods: required pod affinity with that topology. */
export function staysTogether({ affinity }: Pick<PodSpec, 'affinity'>): boolean {
  const terms = affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return terms?.some(({ topologyKey }) => isArchitectureKey(topologyKey)) ?? false;
}

export function nodesPinnedBy({ matchFields }: NodeSelectorTerm): readonly string[] {
  return matchFields?.filter(isNodeName).flatMap(({ values }) => values ?? []) ?? [];
}

function isNodeName({ key, operator }: NodeSelectorRequirement): boolean {
  return key === 'metadata.name' && operator === 'In';
}

/** Whether a term constrains itself to one architecture, or pins the node. */
export function constrainsItself(term: NodeSelectorTerm): boolean {
  if (pinsNode(term)) return true;
  const named = namedArchitectures(term);
  if (named !== undefined) return named.size < 2;
  return (
    term.matchExpressions?.some(
      ({ key, operator }) => isArchitectureKey(key) && operator === 'DoesNotExist',
    ) ?? false
  );
}

/** The terms with a constraint of their own. No architecture is added to them. */
export function keptTerms(terms: Terms | undefined): Terms {
  return terms?.filter((term) => !isEmptyTerm(term) && constrainsItself(term)) ?? [];
}

/** The architectures that a term names by `In` and permits; `undefined`: it names none. */
export function namedArchitectures({ matchExpressions }: NodeSelectorTerm): ReadonlySet<string> | undefined {
  let named: Set<string> | undefined;
  for (const { key, operator, values } of matchExpressions ?? []) {
    if (!isArchitectureKey(key) || operator !== 'In') continue;
    const list = new Set(values ?? []);
    named = named === undefined ? list : new Set([...named].filter((name) => list.has(name)));
  }
  if (named === undefined) return undefined;
  for (const { key, operator, values } of matchExpressions ?? []) {
    if (!isArchitectureKey(key) || operator === 'In' || operator === 'Exists') continue;
    if (operator !== 'NotIn') return new Set();
    for (const name of values ?? []) named.delete(name);
  }
  return named;
}

export function permits(term: NodeSelectorTerm, architecture: string): boolean {
  if (isEmptyTerm(term)) return false;
  for (const { key, operator, values } of term.matchExpressions ?? []) {
    if (!isArchitectureKey(key)) continue;
    if (operator === 'Exists') continue;
    if (operator === 'In' && values?.includes(architecture)) continue;
    if (operator === 'NotIn' && !values?.includes(architecture)) continue;
    return false;
  }
  return true;
}

/** Whether a term matches no node with this label. */
export function excludesLabel({ matchExpressions }: NodeSelectorTerm, label: string, value: string): boolean {
  return (matchExpressions ?? []).some((each) => each.key === label && !meets(each, value));
}

export function permittedBy(terms: Terms | undefined, architecture: string): boolean {
  return terms === undefined || terms.some((term) => permits(term, architecture));
}

/** Whether a term and the architectures that a list of expressions names have one in common. */
export function permitsSome(term: NodeSelectorTerm, expressions: Expressions): boolean {
  const named = namedArchitectures({ matchExpressions: expressions });
  return named === undefined || [...named].some((architecture) => permits(term, architecture));
}

/** The term with more expressions, ANDed after its own. */
export function withExpressions(term: NodeSelectorTerm, expressions: Expressions): NodeSelectorTerm {
  if (expressions.length === 0) return term;
  return { ...term, matchExpressions: [...(term.matchExpressions ?? []), ...expressions] };
}

export function sameTerm(a: NodeSelectorTerm, b: NodeSelectorTerm): boolean {
  return (
    sameList(a.matchExpressions ?? [], b.matchExpressions ?? [], sameExpression) &&
    sameList(a.matchFields ?? [], b.matchFields ?? [], sameExpression)
  );
}

export function sameExpression(a: NodeSelectorRequirement, b: NodeSelectorRequirement): boolean {
  return (
    a.key === b.key &&
    a.operator === b.operator &&
    sameList(a.values ?? [], b.values ?? [], (left, right) => left === right)
  );
}

export function sameList<Item>(
  a: readonly Item[],
  b: readonly Item[],
  same: (left: Item, right: Item) => boolean,
): boolean {
  return a === b || (a.length === b.length && a.every((item, index) => same(item, b[index] as Item)));
}

export function itemsBeyond<Item>(
  present: readonly Item[],
  wanted: readonly Item[],
  same: (a: Item, b: Item) => boolean,
): readonly Item[] {
  if (present.length === 0) return wanted;
  return wanted.filter((item) => !present.some((other) => same(item, other)));
}

const osLabels = ['kubernetes.io/os', 'beta.kubernetes.io/os'] as const;

/**
 * The operating system of a pod: `spec.os.name`, else that of the nodeSelector or of all required terms with
 * content, else `linux`. `spec.os` only informs the kubelet and the validation of pods. Most pods for Windows
 * have nothing but the label `kubernetes.io/os` in their nodeSelector, which the scheduler reads.
 */
export function operatingSystemOf(spec: PodSpec): string {
  if (spec.os?.name) return spec.os.name;
  for (const label of osLabels) {
    const selected = own(spec.nodeSelector, label);
    if (selected) return selected;
  }
  const named = new Set(
    requiredTermsOf(spec)
      ?.filter((term) => !isEmptyTerm(term))
      .map(osOfTerm),
  );
  return (named.size === 1 && [...named][0]) || defaultOs;
}

function osOfTerm({ matchExpressions }: NodeSelectorTerm): string | undefined {
  const chosen = matchExpressions?.find(
    ({ key, operator, values }) =>
      operator === 'In' && values?.length === 1 && osLabels.some((label) => label === key),
  );
  return chosen?.values?.[0];
}
