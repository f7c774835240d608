/**
 * Decides for an existing pod, which cannot be denied: without a common architecture it stays pending, even
 * under `deny`. It waits for unknown images under any policy; after its time, the fallback applies.
 */
import { factsWanted, type FactsByImage, type FactsWanted } from '../../cluster/facts-of-pod.ts';
import { createNodeHostnames } from '../../cluster/node-hostnames.ts';
import { createPullableNodes } from '../../cluster/pullable-nodes.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { ChosenSide, PlacementDecision, PlacementInput } from '../../placement/decision.ts';
import { imagesOf } from '../../placement/pod/images.ts';
import { skipReasonOf } from '../../placement/rules/skip.ts';
import type { Leading } from '../leadership/leading.ts';
import { contextOf } from '../scope/decided-pod.ts';

export interface WaitingInput extends Omit<PlacementInput, 'facts' | 'pod'> {
  readonly pod: Pod;
}

const noFacts: FactsByImage = new Map();

/** A kind that cannot be listed, for example without the right to, must not hold pods. */
const patienceMs = 10_000;
/** Groups that get their first request about a repository answer within a second, or count as not known. */
const pullableMs = 1000;
/** When the time of thousands of pods is over, a group that does not answer must not hold each of them. */
const lastPullableMs = 20;

/**
 * Waits for what each pod's policy depends on, and for nodes, which decide between several possible terms. A
 * new leader often lists them after the pods, and would remove gates by the wrong policy. Never rejects.
 */
export function policiesKnown({ caches, signal, clock, log }: Leading): Promise<void> {
  const { namespaces, clusterConfigs, podConfigs, rollouts, nodes } = caches;
  return new Promise((resolve) => {
    const cancel = clock.timer(patienceMs, () => {
      log.warn('namespaces, nodes or custom resources cannot be listed; gated pods are decided without them');
      resolve();
    });
    const all = [namespaces, clusterConfigs, podConfigs, rollouts, nodes].map((each) => each.ready(signal));
    void Promise.allSettled(all).then(() => {
      cancel();
      resolve();
    });
  });
}

export function inputOf(pod: Pod, leading: Leading): WaitingInput {
  const { namespace = '' } = pod.metadata ?? {};
  const seal = leading.recordSealer?.().sealOf('Pod', namespace, pod.metadata);
  const context = contextOf(leading, namespace, pod.metadata ?? {});
  return { ...context, pod, waiting: true, ...(seal && { seal }) };
}

export function wantedOf({ pod, namespace }: WaitingInput, budgetMs: number): FactsWanted {
  return factsWanted(pod, namespace, imagesOf(pod.spec), budgetMs);
}

/** The decision for a pod that is skipped and needs no facts; `undefined` for any other. */
export function skippedOf(input: WaitingInput): PlacementDecision | undefined {
  return skipReasonOf(input) === undefined ? undefined : decideWaiting(input, noFacts, false);
}

/** Adds which nodes can pull the images, if the policy requires it. Nodes without an answer stay. */
export function createPullability({ fleet, clock, log, pullSecrets, caches }: Leading) {
  const nodeHostnames = createNodeHostnames(caches.nodes);
  const pullableNodes = fleet && createPullableNodes({ fleet, pullSecrets, nodeHostnames, clock, log });
  return async (input: WaitingInput, facts: FactsByImage, expired: boolean): Promise<WaitingInput> => {
    if (!pullableNodes || !input.policy.requirePullableNodes) return input;
    const budgetMs = expired ? lastPullableMs : pullableMs;
    const found = await pullableNodes({ ...wantedOf(input, budgetMs), facts });
    return { ...input, pullability: (image) => found.get(image) };
  };
}

/**
 * @param expired whether it has waited as long as it may
 * @param side what was chosen for a pod in a rollout
 * @returns outcome `gated` if it has to wait, or its side has to be chosen; never `denied`
 */
export function decideWaiting(
  input: WaitingInput,
  facts: FactsByImage,
  expired: boolean,
  side?: ChosenSide,
): PlacementDecision {
  const { policy } = input;
  const { onNoCommonArchitecture, rollout } = policy;
  return decide({
    ...input,
    facts: (image) => facts.get(image),
    policy: {
      ...policy,
      ...(rollout && side && { rollout: { ...rollout, newPods: side } }),
      onUnknownImage: expired ? 'fallback' : 'gate',
      onNoCommonArchitecture: onNoCommonArchitecture === 'deny' ? 'pend' : onNoCommonArchitecture,
    },
  });
}
