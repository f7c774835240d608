/**
 * The nodes that a pod may use, by its spec, its images and the settings. Written from the documentation; it
 * shares no code with the program. `e2e/cluster/random-pods.test.ts` compares its node rules with the real
 * scheduler.
 */
import type { NodeSelectorTerm, PodSpec, Toleration } from '../../../src/kube/api/objects.ts';
import { selects, termMatches, tolerates, type ModelNode } from '../scheduler-model.ts';
import type { Case } from './generate.ts';
import { linuxPlatforms, verdictOf, type Verdict } from './runtimes.ts';
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

/**
 * Whether a node stays allowed although it cannot run the images: the pod names nodes, or selects an
 * architecture that none of its images has.
 */
export function isKept(
  { pod: { spec } }: Case,
  name: string,
  architectures: readonly string[] | undefined,
): boolean {
  const architecture = modelNodes.find((node) => node.name === name)?.architecture ?? '';
  return namesNode(spec) || architectures?.includes(architecture) !== true;
}

export function namesNode(spec: PodSpec): boolean {
  const isNamed = (term: NodeSelectorTerm): boolean =>
    (term.matchFields ?? []).some(({ operator }) => operator === 'In') ||
    (term.matchExpressions ?? []).some(
      ({ key, operator }) => key === 'kubernetes.io/hostname' && operator === 'In',
    );
  return termsOf(spec)?.some(isNamed) ?? false;
}

function knownImages({ images }: Case): Case['images'] {
  return images.filter(({ knowledge }) => knowledge !== 'never');
}

/** Whether a node can pull and run all known images. */
export function runsOn(one: Case, name: string): Verdict {
  const node = modelNodes.find((each) => each.name === name)?.node;
  const verdicts = new Set(knownImages(one).map((image) => (node ? verdictOf(image, node) : 'no')));
  if (verdicts.has('no')) return 'no';
  return verdicts.has('maybe') ? 'maybe' : 'yes';
}

/**
 * @param required `undefined`: the pod's own selection counts
 * @param named architectures that the pod named itself: their nodes need no labels
 */
export function nodesFor(
  { pod: { spec, metadata } }: Case,
  tolerated: readonly string[],
  required: readonly string[] | undefined,
  named: readonly string[] = [],
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
    .filter((node) => required === undefined || termsAllow(spec, node, required, named))
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

export function differentLabels(architectures: readonly string[]): boolean {
  return new Set(architectures.map((name) => JSON.stringify(requiredNodeLabels[name] ?? {}))).size > 1;
}

/** The architectures that the known images, the pod's label and the settings allow; `undefined`: any. */
export function boundOf(
  one: Case,
  { schedulable, allowed }: Pick<ModelPolicy, 'schedulable' | 'allowed'>,
): readonly string[] | undefined {
  const label = one.pod.metadata?.labels?.[architectureLabel];
  const images = architecturesOfImages(one, schedulable);
  const limits = [images, allowed, allowed && schedulable, label === undefined ? undefined : [label]];
  return limits.reduce((left, limit) =>
    left && limit ? left.filter((name) => limit.includes(name)) : (left ?? limit),
  );
}

export function fallbackWithin(
  { pod: { spec } }: Case,
  { fallback, schedulable }: Pick<ModelPolicy, 'fallback' | 'schedulable'>,
  bound: readonly string[] | undefined,
): string | undefined {
  if (fallback === undefined || !allowsAny(spec, fallback)) return undefined;
  const isPossible = [bound, schedulable].every((names) => names?.includes(fallback) ?? true);
  return isPossible ? fallback : undefined;
}

/** Those of all known images: with a node that can run them all, or named by all, if no node has it. */
export function architecturesOfImages(
  one: Case,
  schedulable: readonly string[] | undefined,
): readonly string[] | undefined {
  const images = knownImages(one);
  if (images.length === 0) return undefined;
  const able = nodes.filter((node) => images.every((image) => verdictOf(image, node) !== 'no'));
  const named = images
    .map((image) => linuxPlatforms(image).map(({ architecture }) => architecture))
    .reduce((left, names) => left.filter((name) => names.includes(name)))
    .filter((name) => nodes.every(({ architecture }) => architecture !== name));
  const all = [...new Set([...able.map(({ architecture }) => architecture), ...named])];
  return all.filter((name) => schedulable?.includes(name) ?? true);
}

/** The weights of the first preference that is possible in part, heaviest first. All images are known. */
export function preferredAmong(
  { pod: { spec, metadata }, images }: Case,
  possible: readonly string[],
  policy: ModelPolicy,
): Readonly<Record<string, number>> {
  const own = spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const prefersItself = own.some(({ preference }) =>
    (preference.matchExpressions ?? []).some(({ key }) => keys.includes(key)),
  );
  if (prefersItself) return {};
  // Prefers an architecture without unknown results on any node.
  const hasNodes = (name: string): boolean => nodes.some(({ architecture }) => architecture === name);
  const sure = possible.filter((name) => isSure(images, name));
  const preferable = sure.some(hasNodes) ? sure : possible;
  const label = metadata?.labels?.['arch.example/preferred'];
  const weights = metadata?.annotations?.['arch.example/preferred-weights'] ?? '';
  const preferences: readonly (readonly (readonly [string, number])[])[] = [
    label === undefined ? [] : [[label, 100]],
    /^(?:[a-z0-9]+=[0-9]+,?)+$/.test(weights)
      ? weights.split(',').map((part) => [part.split('=')[0] ?? '', Number(part.split('=')[1])] as const)
      : [],
    Object.entries(policy.weights),
  ];
  const met = preferences.map((all) =>
    all.filter(([name]) => preferable.includes(name) && allowsAny(spec, name)).sort((a, b) => b[1] - a[1]),
  );
  return Object.fromEntries(met.find((all) => all.length > 0) ?? []);
}

/** Whether it is certain for each node of the architecture which of the images run. */
export function isSure(images: Case['images'], name: string): boolean {
  return images.every((image) =>
    nodes.every((node) => node.architecture !== name || verdictOf(image, node) !== 'maybe'),
  );
}

/** Whether a required term allows the architecture. */
export function allowsAny(spec: PodSpec, architecture: string): boolean {
  return termsOf(spec)?.some((term) => allowsArchitecture(term, architecture)) ?? true;
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

export function termsOf(spec: PodSpec): readonly NodeSelectorTerm[] | undefined {
  return spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
}

export function isEmpty(term: NodeSelectorTerm): boolean {
  return (term.matchExpressions ?? []).length === 0 && (term.matchFields ?? []).length === 0;
}

/** Whether the pod selects one architecture or its node, which archwright keeps. */
export function selectsArchitecture(spec: PodSpec): boolean {
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

export function ownArchitectures(spec: PodSpec, possible: readonly string[] | undefined): readonly string[] {
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
      ? terms.flatMap((term) =>
          (term.matchExpressions ?? [])
            .filter(({ key, operator }) => keys.includes(key) && operator === 'In')
            .flatMap(({ values }) => values ?? [])
            .filter((name) => allowsArchitecture(term, name)),
        )
      : [selected];
  return named;
}

/** A term that selects one architecture is kept; any other is narrowed to those of the images. */
function termsAllow(
  spec: PodSpec,
  node: (typeof modelNodes)[number],
  required: readonly string[],
  named: readonly string[],
): boolean {
  const labels = named.includes(node.architecture) ? {} : requiredNodeLabels[node.architecture];
  const fits =
    required.includes(node.architecture) &&
    Object.entries(labels ?? {}).every(([key, value]) => node.labels[key] === value);
  const terms = termsOf(spec);
  if (terms === undefined) return fits;
  return terms.some((term) => termMatches(term, node) && (fits || termChooses(term)));
}
