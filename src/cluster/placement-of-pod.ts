/**
 * The placement of one pod. The webhook, the gates and `explain` take the same steps in the same order, so
 * they decide alike:
 *
 * 1. The policy of the pod. A skipped pod needs no facts.
 * 2. The facts of its images, and with `requirePullableNodes` the nodes that can pull them.
 * 3. The decision (`placement/decide.ts`). The policy is read again: it depends on whether agents answer.
 * 4. If the images share no architecture, remembered tags are confirmed before the pod is refused: somebody
 *    may have pushed the missing architecture since.
 *
 * All steps share one time budget. The callers do the rest: a patch, an event, a text.
 */
import { confirmedMs } from '../images/facts/facts.ts';
import type { OwnerReference } from '../kube/api/objects.ts';
import { decide } from '../placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../placement/decision.ts';
import { imagesOf, type ImageUse } from '../placement/pod/images.ts';
import { namedNodeArchitecture, skipReasonOf } from '../placement/rules/skip.ts';
import type { Policies } from '../policy/effective/policies.ts';
import type { Clock } from '../async/clock.ts';
import {
  podFactsRequestOf,
  type FactsByImage,
  type FactsOfPod,
  type PodFactsRequest,
} from './facts-of-pod.ts';
import type { CurrentNodeClasses } from './nodes.ts';
import type { PullableNodes } from './pullable-nodes.ts';
import type { PullSecretNames } from './pull-secrets.ts';

/** A pod, or the template of one, that is to be decided. */
export interface PlacementTarget extends Pick<
  PlacementInput,
  'pod' | 'namespace' | 'template' | 'before' | 'waiting' | 'seal'
> {
  readonly pullSecrets: PullSecretNames;
  /** Default: the owners in its metadata. */
  readonly owners?: readonly OwnerReference[];
  /** A person reads the warnings. If not, no image is looked up for a warning alone. */
  readonly isForPerson?: boolean;
}

/** What a decision depends on beside the pod. Only `factsOfPod` and `pullableNodes` may send requests. */
export interface PlacementSources {
  readonly policies: Policies;
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>>;
  readonly nodeArchitecture?: ((node: string) => string | undefined) | undefined;
  readonly nodeClasses?: CurrentNodeClasses | undefined;
  readonly factsOfPod: FactsOfPod;
  /** Absent without agents. */
  readonly pullableNodes?: PullableNodes | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
}

export interface PlacementLimits extends Pick<PodFactsRequest, 'cacheOnly'> {
  /** The longest wait of all steps together, milliseconds. */
  readonly budgetMs: number;
}

export interface Placement {
  readonly decision: PlacementDecision;
  /** What the decision was made from. */
  readonly input: PlacementInput;
}

const noFacts = (): undefined => undefined;

export async function placementOf(
  target: PlacementTarget,
  sources: PlacementSources,
  { budgetMs, cacheOnly = false }: PlacementLimits,
): Promise<Placement> {
  const { factsOfPod, pullableNodes, clock } = sources;
  const deadline = clock.monotonic() + budgetMs;
  const withTimeLeft = (request: PodFactsRequest): PodFactsRequest => {
    return { ...request, budgetMs: Math.max(1, deadline - clock.monotonic()) };
  };

  const uses = imagesOf(target.pod.spec);
  const withoutFacts = placementInputOf(target, sources, noFacts);
  const isSkipped = skipReasonOf(withoutFacts, uses) !== undefined;
  const isForWarning = target.isForPerson === true && namedNodeArchitecture(withoutFacts) !== undefined;
  if (isSkipped && !isForWarning) return decided(withoutFacts);

  const { pod, namespace, pullSecrets } = target;
  const request = { ...podFactsRequestOf(pod, namespace, uses, budgetMs), pullSecrets, cacheOnly };
  const facts = await factsOfPod(request);
  let input = placementInputOf(target, sources, (image) => facts.get(image));
  if (isSkipped || cacheOnly) return decided(input);

  if (pullableNodes && input.policy.requirePullableNodes && target.template === undefined) {
    const pullability = await pullableNodes(withTimeLeft(request), facts);
    input = { ...input, pullability: (image) => pullability.get(image) };
  }

  const first = decided(input);
  const remembered = isRefused(first) ? rememberedTags(uses, facts) : [];
  if (remembered.length === 0) return first;
  const confirming = { ...withTimeLeft(request), uses: remembered, maxAgeMs: confirmedMs };
  const confirmed = new Map([...facts, ...(await factsOfPod(confirming))]);
  return decided({ ...input, facts: (image) => confirmed.get(image) });
}

/** The input of a decision, with the policy that applies to the pod now. */
export function placementInputOf(
  target: PlacementTarget,
  {
    policies,
    namespaceLabels: labelsOf,
    nodeArchitecture,
    nodeClasses,
  }: Omit<PlacementSources, 'factsOfPod'>,
  facts: PlacementInput['facts'],
): PlacementInput {
  const { pullSecrets: _, owners, isForPerson: __, ...input } = target;
  const { namespace, pod } = target;
  const { labels, ownerReferences } = pod.metadata ?? {};
  const namespaceLabels = labelsOf(namespace);
  const nodes = nodeClasses?.();
  return {
    ...input,
    namespaceLabels,
    policy: policies.policyOf({ namespace, namespaceLabels, labels, owners: owners ?? ownerReferences }),
    facts,
    ...(nodeArchitecture && { nodeArchitecture }),
    ...(nodes && { nodes }),
  };
}

function decided(input: PlacementInput): Placement {
  return { input, decision: decide(input) };
}

function isRefused({ decision }: Placement): boolean {
  return decision.required?.length === 0;
}

/** Tags with facts. For a pod that always pulls, the configuration decides how old facts may be. */
function rememberedTags(uses: readonly ImageUse[], facts: FactsByImage): readonly ImageUse[] {
  return uses.filter(({ image, pullPolicy }) => {
    const known = facts.get(image);
    const isKnown = known !== undefined && known.error === undefined && known.source !== 'override';
    return isKnown && pullPolicy === 'IfNotPresent' && !image.includes('@');
  });
}
