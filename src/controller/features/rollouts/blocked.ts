/**
 * Why a workload cannot be moved: the webhook's decision for a pod like its newest one, if the rollout moved
 * it. What blocks it may pass, for example when an image becomes known.
 */
import type { NodeSelectorTerm, PodSpec } from '../../../kube/api/objects.ts';
import { decide } from '../../../placement/decide.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { imagesOf } from '../../../placement/pod/images.ts';
import { permittedBy } from '../../../placement/pod/terms.ts';
import type { Rule } from '../../../placement/rules/rules.ts';
import { namesArchitectures, ownFieldsOf, withNames } from '../../../placement/record/own-fields.ts';
import { recordedIn, recordedWidened } from '../../../placement/record/read.ts';
import type { RolloutPolicy } from '../../../policy/effective/policy.ts';
import { keys } from '../../../names/keys.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { contextOf, podOf } from '../../pods/skipped-pods.ts';
import { factsOf } from '../../pods/pulled-images.ts';

export interface Movable {
  /** Why it cannot be moved; `undefined`: it can. */
  readonly blocked?: string | undefined;
  /** An image that failed on the architecture, as `exec-format/` noted it. */
  readonly broken?: string | undefined;
}

/**
 * Longest wait for images. Lookups that take longer go on, and their results count at the next look. A
 * namespace can have 100 rollouts, which must not keep those of others waiting, nor its own rollbacks.
 */
const factsBudgetMs = 1000;

/** @param since when this attempt began; `undefined`: it begins now. @throws KubeError */
export async function movableOf(
  leader: LeaderContext,
  pod: RunningPod,
  { name, architecture }: Pick<RolloutPolicy, 'name' | 'architecture'>,
  since: number | undefined,
): Promise<Movable> {
  if (pod.staysTogether) return { blocked: 'its pods must run on one architecture, by their pod affinity' };
  const { policy, ...context } = contextOf(leader, pod.namespace, pod);
  const { metadata, spec } = podOf(pod);
  const now = { metadata, spec: { ...spec, ...requiring(pod.nodeChoice?.terms) } };
  // Its record counts without a seal, which needs its `generateName`.
  const fields = ownFieldsOf(now.spec, recordedIn({ pod: now, waiting: true }));
  const widened = namesArchitectures(fields) ? undefined : recordedWidened({ pod: now });
  const own = widened ? withNames(fields, widened) : fields;
  // A pod that this rollout did not widen stays so, for example because another webhook insists.
  const isKept = widened === undefined && since !== undefined && pod.createdAt >= since;
  const { [keys.decision]: _, ...annotations } = pod.annotations ?? {};
  const facts = await factsOf(leader, pod, imagesOf(spec), { budgetMs: factsBudgetMs });
  const decision = decide({
    ...context,
    pod: {
      metadata: { ...metadata, annotations },
      spec: { ...spec, nodeSelector: own.nodeSelector, ...requiring(own.terms) },
    },
    policy: {
      ...policy,
      rollout: { name, architecture, newPods: 'Target' },
      ...(isKept && { constraints: 'keep' }),
    },
    facts: (image) => facts.get(image),
  });
  const failed = decision.images.find(
    ({ facts: of }) =>
      of?.brokenOn?.includes(architecture) === true ||
      (of?.requiredLevel !== undefined && architecture === 'amd64'),
  );
  const broken = failed && `${printable(failed.image, maxImageBytes)} cannot run there`;
  return { blocked: blockedBy(decision, architecture), broken };
}

function requiring(nodeSelectorTerms: readonly NodeSelectorTerm[] | undefined): Pick<PodSpec, 'affinity'> {
  if (nodeSelectorTerms === undefined) return {};
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return { affinity: { nodeAffinity: required } };
}

function blockedBy(
  { outcome, required, images, own, reasons }: PlacementDecision,
  architecture: string,
): string | undefined {
  if (outcome === 'skipped') return 'archwright skips its pods';
  if (outcome === 'own-constraint') return 'its pods constrain the architecture themselves';
  if (outcome === 'unconstrained') return 'its images do not say which architectures they have';
  if (outcome !== 'placed') {
    const unknown = images.find((each) => each.unknown !== undefined);
    return unknown
      ? `${printable(unknown.image, maxImageBytes)} is not known yet`
      : 'its images share no architecture';
  }
  if (!permittedBy(own?.terms, architecture)) return `its own node affinity excludes ${architecture}`;
  if (required?.includes(architecture) === true) return undefined;
  const lacking = images.filter((each) => each.architectures?.includes(architecture) === false);
  const names = listed(lacking, ({ image }) => printable(image, maxImageBytes), 300);
  if (names !== '') return `${names}: no ${architecture}`;
  const isPinned = reasons.some(({ rule }) => rule === ('preference-hard' satisfies Rule));
  return isPinned ? 'a label or annotation pins its pods' : `a policy excludes ${architecture}`;
}
