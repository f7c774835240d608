/**
 * How a pod that waits behind its gate is decided. It exists already, so it cannot be denied: without a common
 * architecture it stays pending, even under `deny`. It waits for unknown images under any policy; after its
 * time the fallback applies. And the leader chooses where a rollout puts it.
 */
import { limited, unlessAborted } from '../../../async/wait.ts';
import type { PlacementSources, PlacementTarget } from '../../../cluster/placement-of-pod.ts';
import { createNodeHostnames } from '../../../cluster/nodes.ts';
import { createPullableNodes } from '../../../cluster/pullable-nodes.ts';
import { pullSecretNames } from '../../../credentials/sources/pull-secrets.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { isUnknown } from '../../../placement/rules/images/unknown.ts';
import type { Rule } from '../../../placement/rules/rules.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import type { WaitingReason } from './waiting.ts';

/** A kind that cannot be listed, for example without the right to, must not hold pods. */
const patienceMs = 10_000;

/** The shortest pause, if an agent says that a lookup may be repeated at once. */
const leastRetryMs = 1000;

/**
 * Waits for what each pod's policy depends on, and for nodes, which decide between several possible terms. A
 * new leader often lists them after the pods, and would remove gates by the wrong policy. Never rejects.
 */
export async function policiesKnown({ caches, signal, clock, log }: LeaderContext): Promise<void> {
  const { namespaces, clusterConfigs, podConfigs, rollouts, nodes } = caches;
  const all = [namespaces, clusterConfigs, podConfigs, rollouts, nodes].map((each) => each.ready(signal));
  const known = (within: AbortSignal) => unlessAborted(Promise.allSettled(all), within);
  await limited(patienceMs, signal, known, clock.sleep).catch(() => {
    if (signal.aborted) return;
    log.warn('namespaces, nodes or custom resources not listed in time; deciding gated pods without them');
  });
}

/** @returns the sources for a pod. `isExpired`: it has waited as long as it may */
export function createWaitingSources(leader: LeaderContext): (isExpired: boolean) => PlacementSources {
  const { caches, policies, fleet } = leader;
  const nodeHostnames = createNodeHostnames(caches.nodes);
  const sources = {
    ...leader,
    namespaceLabels: (namespace: string) => caches.namespaces.get('', namespace) ?? {},
    pullableNodes: fleet && createPullableNodes({ ...leader, fleet, nodeHostnames }),
  };
  return (isExpired) => ({
    ...sources,
    policies: {
      policyOf: (subject) => {
        const policy = policies.policyOf(subject);
        const { onNoCommonArchitecture } = policy;
        return {
          ...policy,
          onUnknownImage: isExpired ? 'fallback' : 'gate',
          onNoCommonArchitecture: onNoCommonArchitecture === 'deny' ? 'pend' : onNoCommonArchitecture,
        };
      },
    },
  });
}

export function targetOf(pod: Pod, { sealOf }: Pick<LeaderContext, 'sealOf'>): PlacementTarget {
  const { namespace = '' } = pod.metadata ?? {};
  const seal = sealOf?.('Pod', namespace, pod.metadata);
  const pullSecrets = { names: pullSecretNames(pod.spec) };
  return { pod, namespace, pullSecrets, waiting: true, ...(seal && { seal }) };
}

/** Whether everything is known but where a rollout puts the pod. */
export function isToChoose({ outcome, reasons: [first] }: PlacementDecision): boolean {
  return outcome === 'gated' && first?.rule === ('rollout-choose' satisfies Rule);
}

/** The earliest time for another lookup of an unknown image; Infinity if no answer says it. */
export function retryMsOf({ images }: PlacementDecision): number {
  const times = images.filter(isUnknown).flatMap(({ facts }) => facts?.error?.retryAfterMs ?? []);
  return Math.max(leastRetryMs, Math.min(...times, Number.POSITIVE_INFINITY));
}

/** The error of the first unknown image; `undefined` while an image has no answer at all. */
export function reasonOf({ images }: PlacementDecision): WaitingReason | undefined {
  const unknown = images.filter(isUnknown);
  const errors = unknown.flatMap(({ facts }) => facts?.error?.code ?? []);
  return errors.length < unknown.length ? undefined : errors[0];
}
