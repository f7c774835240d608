/**
 * The nodes that a pod may use, by its spec, its images and the settings. Written from the documentation; it
 * shares no code with the program. The same run compares its node rules with the real scheduler.
 */
import type { NodeSelectorTerm, PodSpec, Toleration } from '../../../../src/kube/api/objects.ts';
import { selects, termMatches, tolerates, type ModelNode } from '../../../support/scheduler-model.ts';
import type { Case } from './generate.ts';
import { verdictOf, type Verdict } from './runtimes.ts';
import { nodes, requiredNodeLabels, toleratedFor, type PoolNode, type ModelPolicy } from './world.ts';

interface NodeInModel extends ModelNode {
  readonly architecture: string;
  readonly node: PoolNode;
}

export const modelNodes: readonly NodeInModel[] = nodes.map((node) => {
  const { name, architecture, labels = {}, taints = [] } = node;
  return {
    name,
    architecture,
    node,
    labels: {
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': architecture,
      'kubernetes.io/hostname': name,
      ...labels,
    },
    taints: taints.map(({ key, value = '', effect }) => ({ key, value, effect })),
  };
});

const architectureLabel = 'kubernetes.io/arch';
const keys = ['kubernetes.io/arch', 'beta.kubernetes.io/arch'];

/** Nodes that the pod may go to without archwright. */
export function nodesWithoutArchwright({ pod: { spec } }: Case): readonly string[] {
  return modelNodes
    .filter((node) => selects(spec, node) && tolerates(spec.tolerations, node))
    .map(({ name }) => name);
}

export interface Expected {
  readonly may: readonly string[];
  readonly must: boolean;
  /** Nodes that its images, author and settings allow: a DaemonSet has a pod on each. */
  readonly able: readonly string[];
  readonly mayBeRefused: boolean;
}

/** The expected result for a pod. @param wasGated whether archwright gated it */
export function expectedOf(one: Case, policy: ModelPolicy, wasGated: boolean): Expected {
  const { spec } = one.pod;
  const possible = architecturesOf(one, policy);
  const mayBeRefused = hasNoCommonArchitecture(one, policy);
  if (!selectsArchitecture(spec)) {
    const required = pinnedAmong(one, possible, policy);
    const all = nodesFor(one, required ?? [], required);
    const able = all.filter((name) => runsOn(one, name) !== 'no');
    const may = all.filter((name) => able.includes(name) || isKept(one, name, required));
    // A pod's terms cannot multiply, so of architectures with different node labels one group is chosen.
    const narrowed = wasGated && termsOf(spec) !== undefined && differentLabels(required ?? []);
    return { may, must: able.length > 0 && !mayBeRefused && !narrowed, able, mayBeRefused };
  }
  // Tolerated: the selected architectures, or those of them that the known images support. A fallback is only
  // for pods that select no architecture.
  const known = architecturesOf(one, { ...policy, fallback: undefined });
  const own = ownArchitectures(spec, known);
  const tolerated = own.filter((name) => known?.includes(name) ?? true);
  const certain = nodesFor(one, tolerated, undefined).filter((name) => runsOn(one, name) !== 'no');
  // It is not gated, so images that are not known at once may exclude nothing.
  const atOnce = { ...one, images: one.images.filter(({ knowledge }) => knowledge === 'at once') };
  const may = nodesFor(one, own, undefined).filter(
    (name) => runsOn(atOnce, name) !== 'no' || isKept(one, name, tolerated),
  );
  return { may, must: certain.length > 0, able: certain, mayBeRefused };
}

/** Of a DaemonSet with the pod as template: it has no preference, and runs on every node that it can. */
export function expectedOfDaemon(one: Case, policy: ModelPolicy): Expected {
  return expectedOf(one, { ...policy, hard: false }, false);
}

/**
 * Whether a node stays allowed although it cannot run the images: the pod names nodes, or selects an
 * architecture that none of its images has.
 */
function isKept(
  { pod: { spec } }: Case,
  name: string,
  architectures: readonly string[] | undefined,
): boolean {
  const namesNode = termsOf(spec)?.some(
    (term) =>
      term.matchFields?.some(({ operator }) => operator === 'In') ||
      term.matchExpressions?.some(
        ({ key, operator }) => key === 'kubernetes.io/hostname' && operator === 'In',
      ),
  );
  const architecture = modelNodes.find((node) => node.name === name)?.architecture ?? '';
  return namesNode === true || architectures?.includes(architecture) !== true;
}

function knownImages({ images }: Case): Case['images'] {
  return images.filter(({ knowledge }) => knowledge !== 'never');
}

/** Whether a node can pull and run all known images. */
function runsOn(one: Case, name: string): Verdict {
  const node = modelNodes.find((each) => each.name === name)?.node;
  const verdicts = new Set(knownImages(one).map((image) => (node ? verdictOf(image, node) : 'no')));
  if (verdicts.has('no')) return 'no';
  return verdicts.has('maybe') ? 'maybe' : 'yes';
}

/** @param required `undefined`: the pod's own selection counts */
function nodesFor(
  { pod: { spec, metadata } }: Case,
  tolerated: readonly string[],
  required: readonly string[] | undefined,
): readonly string[] {
  const tolerations: readonly Toleration[] = [
    ...(spec.tolerations ?? []),
    ...tolerated
      .flatMap(toleratedFor)
      .map(({ key, value }) => ({ key, ...(value === undefined ? { operator: 'Exists' } : { value }) })),
  ];
  const matched = ['zone', architectureLabel].flatMap((key) => {
    const value = metadata?.labels?.[key];
    return value === undefined || (key === 'zone' && excludesZone(spec, value))
      ? []
      : [[key, value] as const];
  });
  return modelNodes
    .filter((node) => selects(spec, node) && tolerates(tolerations, node))
    .filter(({ labels }) => matched.every(([key, value]) => labels[key] === value))
    .filter((node) => required === undefined || termsAllow(spec, node, required))
    .map(({ name }) => name);
}

/** Whether no node of this zone meets the pod's own constraints. Then its label for the zone is ignored. */
function excludesZone(spec: Case['pod']['spec'], zone: string): boolean {
  const { nodeSelector } = spec;
  const terms = termsOf(spec);
  if (nodeSelector?.['zone'] !== undefined && nodeSelector['zone'] !== zone) return true;
  const isExcluded = (term: NonNullable<typeof terms>[number]): boolean =>
    (term.matchExpressions ?? []).some(
      ({ key, operator, values }) => key === 'zone' && values?.includes(zone) === (operator === 'NotIn'),
    );
  return terms !== undefined && terms.length > 0 && terms.every(isExcluded);
}

function differentLabels(architectures: readonly string[]): boolean {
  return new Set(architectures.map((name) => JSON.stringify(requiredNodeLabels[name] ?? {}))).size > 1;
}

/** Whether the images of a pod without own selection share no architecture: it is refused or pending. */
function hasNoCommonArchitecture(one: Case, policy: ModelPolicy): boolean {
  return !selectsArchitecture(one.pod.spec) && architecturesOf(one, policy)?.length === 0;
}

/**
 * Architectures of all images, and the pod's label for its node; `undefined`: no constraint. For images that
 * stay unknown, the fallback, if the pod's own terms allow it.
 */
function architecturesOf({ images, pod }: Case, policy: ModelPolicy): readonly string[] | undefined {
  const known = images.filter(({ knowledge }) => knowledge !== 'never');
  const has = known.length === 0 ? undefined : linuxArchitectures(known);
  const label = pod.metadata?.labels?.[architectureLabel];
  const bound = label === undefined ? has : (has ?? [label]).filter((name) => name === label);
  if (known.length === images.length) return bound;
  const { fallback } = policy;
  const terms = termsOf(pod.spec);
  const isExcluded = fallback !== undefined && terms?.every((term) => !allowsArchitecture(term, fallback));
  if (fallback === undefined || isExcluded === true) return bound;
  return bound === undefined || bound.includes(fallback) ? [fallback] : bound;
}

/** Architectures with a node that can run all of these images. */
function linuxArchitectures(images: Case['images']): readonly string[] {
  const able = nodes.filter((node) => images.every((image) => verdictOf(image, node) !== 'no'));
  return [...new Set(able.map(({ architecture }) => architecture))];
}

/** With a hard preference one of them is required: the first preferred one that is possible. */
function pinnedAmong(
  { pod: { spec, metadata }, images }: Case,
  possible: readonly string[] | undefined,
  policy: ModelPolicy,
): readonly string[] | undefined {
  if (!policy.hard || possible === undefined || images.some(({ knowledge }) => knowledge === 'never')) {
    return possible;
  }
  const preferred = spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const prefersItself = preferred.some(({ preference }) =>
    (preference.matchExpressions ?? []).some(({ key }) => keys.includes(key)),
  );
  if (prefersItself) return possible;
  const terms = termsOf(spec);
  // Prefers an architecture without unknown results on any node.
  const sure = possible.filter((name) =>
    images.every((image) =>
      nodes.every((node) => node.architecture !== name || verdictOf(image, node) !== 'maybe'),
    ),
  );
  const preferable = sure.length > 0 ? sure : possible;
  const can = (architecture: string): boolean =>
    preferable.includes(architecture) &&
    (terms === undefined || terms.some((term) => allowsArchitecture(term, architecture)));
  const weights = metadata?.annotations?.['arch.example/preferred-weights'] ?? '';
  const preferences = [
    [metadata?.labels?.['arch.example/preferred'] ?? ''],
    /^(?:[a-z0-9]+=[0-9]+,?)+$/.test(weights)
      ? weights
          .split(',')
          .map((part) => part.split('='))
          .sort((a, b) => Number(b[1]) - Number(a[1]))
          .map(([name = '']) => name)
      : [],
    [policy.pinned ?? ''],
  ];
  const pin = preferences.map((names) => names.find(can)).find((name) => name !== undefined);
  return pin === undefined ? possible : [pin];
}

/** Whether the term's expressions on architectures allow one. */
function allowsArchitecture(term: NodeSelectorTerm, architecture: string): boolean {
  if (isEmpty(term)) return false;
  return (term.matchExpressions ?? [])
    .filter(({ key }) => keys.includes(key))
    .every((expression) =>
      termMatches(
        { matchExpressions: [expression] },
        { name: '', taints: [], labels: { [expression.key]: architecture } },
      ),
    );
}

function termsOf(spec: PodSpec): readonly NodeSelectorTerm[] | undefined {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
}

function isEmpty(term: NodeSelectorTerm): boolean {
  return (term.matchExpressions ?? []).length === 0 && (term.matchFields ?? []).length === 0;
}

/** Whether the pod selects one architecture or its node, which archwright keeps. */
function selectsArchitecture(spec: PodSpec): boolean {
  if (Object.keys(spec.nodeSelector ?? {}).some((key) => keys.includes(key))) return true;
  const terms = termsOf(spec);
  return terms !== undefined && terms.filter((term) => !isEmpty(term)).every(termChooses);
}

function termChooses(term: NodeSelectorTerm): boolean {
  if ((term.matchFields ?? []).some(({ operator }) => operator === 'In')) return true;
  const about = (term.matchExpressions ?? []).filter(({ key }) => keys.includes(key));
  const named = about.filter(({ operator }) => operator === 'In').flatMap(({ values }) => values ?? []);
  if (named.length === 0) return about.some(({ operator }) => operator === 'DoesNotExist');
  return [...new Set(named)].filter((name) => allowsArchitecture(term, name)).length < 2;
}

function ownArchitectures(spec: PodSpec, possible: readonly string[] | undefined): readonly string[] {
  const selected = keys.map((key) => spec.nodeSelector?.[key]).find((value) => value !== undefined);
  const terms = termsOf(spec) ?? [];
  const pins = terms.some(
    (term) =>
      (term.matchFields ?? []).some(({ operator }) => operator === 'In') &&
      !(term.matchExpressions ?? []).some(({ key, operator }) => keys.includes(key) && operator === 'In'),
  );
  if (selected === undefined && pins) return possible ?? [];
  const named =
    selected === undefined
      ? terms
          .flatMap((term) => term.matchExpressions ?? [])
          .filter(({ key, operator }) => keys.includes(key) && operator === 'In')
          .flatMap(({ values }) => values ?? [])
      : [selected];
  return named;
}

/** A term that selects one architecture is kept; any other is narrowed to those of the images. */
function termsAllow(spec: PodSpec, node: (typeof modelNodes)[number], required: readonly string[]): boolean {
  const fits =
    required.includes(node.architecture) &&
    Object.entries(requiredNodeLabels[node.architecture] ?? {}).every(
      ([key, value]) => node.labels[key] === value,
    );
  const terms = termsOf(spec);
  if (terms === undefined) return fits;
  return terms.some((term) => termMatches(term, node) && (fits || termChooses(term)));
}
