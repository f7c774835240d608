/**
 * The result of one decision about a pod: exactly the nodes that it can land on, and its preferences. In a
 * cluster (`model.ts`) the times of lookups leave several right results; here there is only one.
 */
import type { NodeSelectorTerm, PodSpec } from '../../../src/kube/api/objects.ts';
import type { Case } from './generate.ts';
import {
  allowsAny,
  architecturesOfImages,
  boundOf,
  differentLabels,
  fallbackWithin,
  isEmpty,
  isKept,
  isSure,
  namesNode,
  nodesFor,
  ownArchitectures,
  preferredAmong,
  runsOn,
  selectsArchitecture,
  termsOf,
} from './model.ts';
import { credentialGroups, nodes, type ModelPolicy } from './world.ts';
import { verdictOf } from './runtimes.ts';

/** A waiting pod is decided again once its images are known, or after its time. */
export type Stage = 'creation' | 'waiting' | 'DaemonSet';

export interface Judgement {
  readonly result: 'admitted' | 'gated' | 'refused';
  readonly nodes: readonly string[];
  /** The terms of a pod that waits cannot be copied, so that it may keep fewer nodes. */
  readonly mayBeFewer: boolean;
  /** Weights of the preferred architectures. */
  readonly preferred: Readonly<Record<string, number>>;
}

/** @param one as its author wrote it, whatever an earlier call added */
export function judge(one: Case, policy: ModelPolicy, stage: Stage): Judgement {
  const images = one.images.map((image) =>
    isKnown(image, stage) ? image : ({ ...image, knowledge: 'never' } as const),
  );
  const widened = stage === 'DaemonSet' ? undefined : widenedOf(one, policy);
  const seen: Case = { ...one, images, pod: { ...one.pod, spec: widened?.spec ?? one.pod.spec } };
  if (widened === undefined && selectsArchitecture(one.pod.spec)) return keptOf(seen, policy, stage);
  const bound = widened?.architectures ?? boundOf(seen, policy);
  const pulling = stage === 'DaemonSet' ? {} : policy;
  const admitted = (required: readonly string[] | undefined, preferred = {}): Judgement => ({
    result: 'admitted',
    nodes: withoutWrong(seen, pulling, required, nodesFor(seen, required ?? [], required, widened?.named)),
    mayBeFewer: stage === 'waiting' && termsOf(one.pod.spec) !== undefined && differentLabels(required ?? []),
    preferred,
  });
  const other = (result: 'gated' | 'refused'): Judgement => ({ ...admitted(bound), result });
  if (bound?.length === 0) {
    // Nothing that was required while the pod waited can be removed.
    if (policy.onNoCommon === 'allow') return { ...admitted(undefined), mayBeFewer: stage === 'waiting' };
    return policy.onNoCommon === 'pend' || stage === 'waiting' ? admitted(bound) : other('refused');
  }
  if (images.some(({ knowledge }) => knowledge === 'never')) {
    const onUnknown = stage === 'waiting' ? 'fallback' : (policy.onUnknown ?? 'gate');
    if (onUnknown === 'deny') return other('refused');
    if (onUnknown === 'gate' && stage === 'creation') return other('gated');
    const fallback =
      onUnknown === 'fallback' && stage !== 'DaemonSet' ? fallbackWithin(seen, policy, bound) : undefined;
    return admitted(fallback === undefined ? bound : [fallback]);
  }
  const required = stage === 'DaemonSet' ? bound : withinRollout(seen, policy, bound ?? []);
  if (required === undefined) return other('gated');
  if (stage === 'DaemonSet') return admitted(required);
  const preferred = preferredAmong(seen, required, policy);
  const [pin] = Object.keys(preferred);
  const isHard = policy.hard && widened === undefined && pin !== undefined;
  return isHard ? admitted([pin]) : admitted(required, preferred);
}

function isKnown({ knowledge }: Case['images'][number], stage: Stage): boolean {
  return knowledge === 'at once' || (stage === 'waiting' && knowledge !== 'never');
}

/** A pod that selects its architecture or node keeps it, and loses nodes that cannot run its images. */
function keptOf(seen: Case, policy: ModelPolicy, stage: Stage): Judgement {
  const possible = architecturesOfImages(seen, policy.schedulable);
  const own = ownArchitectures(seen.pod.spec, possible).filter((name) => possible?.includes(name) ?? true);
  const pulling = stage === 'DaemonSet' ? {} : policy;
  // If its images have nothing of what it selects, it cannot run anyway: any group that can pull is enough.
  const kept = withoutWrong(
    seen,
    pulling,
    own.length === 0 ? undefined : own,
    nodesFor(seen, own, undefined),
  );
  return { result: 'admitted', nodes: kept, mayBeFewer: false, preferred: {} };
}

/** Without nodes that cannot pull or run the images. */
function withoutWrong(
  seen: Case,
  { pulls }: Pick<ModelPolicy, 'pulls'>,
  architectures: readonly string[] | undefined,
  names: readonly string[],
): readonly string[] {
  const able = names.filter((name) => runsOn(seen, name) !== 'no' || isKept(seen, name, architectures));
  if (pulls === undefined || namesNode(seen.pod.spec) || architectures?.length === 0) return able;
  const restricted = seen.images
    .map(({ repository }) => pulls[repository] ?? {})
    .filter((says) => Object.values(says).includes(true) && Object.values(says).includes(false));
  const isUnable = (name: string): boolean => restricted.some((says) => says[name] === false);
  const isLeft = credentialGroups.some(
    ({ name, members }) =>
      restricted.some((says) => says[name] === true) &&
      !isUnable(name) &&
      members.some(({ architecture }) => architectures?.includes(architecture) ?? true),
  );
  if (!isLeft) return able;
  const unable = credentialGroups.filter(({ name }) => isUnable(name)).flatMap(({ members }) => members);
  return able.filter((name) => unable.every((node) => node.name !== name));
}

/** Whether mode `hard` makes the pod's own label or annotation a requirement. */
function isPinnedByLabel({ pod: { metadata = {} } }: Case, { hard }: ModelPolicy): boolean {
  const { labels, annotations } = metadata;
  return (
    hard && Boolean(labels?.['arch.example/preferred'] ?? annotations?.['arch.example/preferred-weights'])
  );
}

/** @returns `undefined`: the pod waits for the choice */
function withinRollout(
  one: Case,
  policy: ModelPolicy,
  bound: readonly string[],
): readonly string[] | undefined {
  const { rollout } = policy;
  if (rollout === undefined || isPinnedByLabel(one, policy)) return bound;
  const permitted = bound.filter((name) => allowsAny(one.pod.spec, name));
  const others = permitted.filter((name) => name !== rollout.architecture);
  if (!permitted.includes(rollout.architecture) || others.length === 0) return bound;
  return { Choose: undefined, Target: [rollout.architecture], Other: others }[rollout.newPods];
}

const keys = ['kubernetes.io/arch', 'beta.kubernetes.io/arch'];

interface WidenedPod {
  /** Without the architectures that it named. */
  readonly spec: PodSpec;
  readonly architectures: readonly string[];
  /** Those that it had before, if it chose one itself. */
  readonly named: readonly string[];
}

/** `constraints: widen`, by docs/use/placement.md. */
function widenedOf(one: Case, policy: ModelPolicy): WidenedPod | undefined {
  const { pod, images } = one;
  const { spec, metadata } = pod;
  if (policy.widens !== true || images.some(({ knowledge }) => knowledge !== 'at once')) return undefined;
  if (spec.runtimeClassName !== undefined) return undefined;
  if (namesNode(spec) || metadata?.labels?.['kubernetes.io/arch'] !== undefined) return undefined;
  if (isPinnedByLabel(one, policy) || (policy.hard && !selectsArchitecture(spec))) return undefined;
  const named = namedBy(spec);
  if (named === undefined || (policy.rollout && named.includes(policy.rollout.architecture)))
    return undefined;
  const possible = architecturesOfImages(one, policy.schedulable) ?? [];
  const allowed = boundOf(one, policy) ?? [];
  const isOwn = selectsArchitecture(spec);
  const before = (isOwn ? possible : allowed).filter((name) => named.includes(name) && allowsAny(spec, name));
  const left = withoutNames(spec);
  const more = possible.filter(
    (name) =>
      !before.includes(name) &&
      allowed.includes(name) &&
      allowsAny(left, name) &&
      isSure(images, name) &&
      nodes.every(
        (node) => node.architecture !== name || images.every((image) => verdictOf(image, node) === 'yes'),
      ),
  );
  if (before.length === 0 || more.length === 0) return undefined;
  return { spec: left, architectures: [...before, ...more], named: isOwn ? before : [] };
}

/** The architectures that nodeSelector and all required terms name alike. */
function namedBy({ nodeSelector = {}, affinity }: PodSpec): readonly string[] | undefined {
  const selected = keys.flatMap((key) => nodeSelector[key] ?? []);
  const terms =
    affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const sets = terms.map(namedIn);
  const [first] = sets;
  if (new Set(sets.map((set) => set?.toSorted().join())).size > 1) return undefined;
  const both = [...(selected.length === 0 ? [] : [selected]), ...(first === undefined ? [] : [first])];
  return both.length === 0 ? undefined : both.reduce((a, b) => a.filter((name) => b.includes(name)));
}

function namedIn(term: NodeSelectorTerm): readonly string[] | undefined {
  const about = (term.matchExpressions ?? []).filter(({ key }) => keys.includes(key));
  const lists = about.filter(({ operator }) => operator === 'In').map(({ values = [] }) => values);
  if (lists.length === 0) return isEmpty(term) ? [] : undefined;
  if (about.some(({ operator }) => operator === 'DoesNotExist')) return [];
  const excluded = new Set(
    about.filter(({ operator }) => operator === 'NotIn').flatMap(({ values = [] }) => values),
  );
  return [...new Set(lists.reduce((a, b) => a.filter((name) => b.includes(name))))].filter(
    (name) => !excluded.has(name),
  );
}

/** A term that named nothing else matches every node. */
function withoutNames(spec: PodSpec): PodSpec {
  const { nodeSelector = {}, affinity } = spec;
  const terms = termsOf(spec)?.map(({ matchExpressions = [], ...rest }) => ({
    ...rest,
    matchExpressions: matchExpressions.filter(
      ({ key, operator }) => !keys.includes(key) || operator !== 'In',
    ),
  }));
  const isFree = terms?.some(
    ({ matchExpressions, matchFields = [] }) => matchExpressions.length + matchFields.length === 0,
  );
  const { requiredDuringSchedulingIgnoredDuringExecution: _, ...preferred } = affinity?.nodeAffinity ?? {};
  const required =
    terms === undefined || isFree === true
      ? {}
      : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  return {
    ...spec,
    nodeSelector: Object.fromEntries(Object.entries(nodeSelector).filter(([key]) => !keys.includes(key))),
    affinity: { nodeAffinity: { ...preferred, ...required } },
  };
}
