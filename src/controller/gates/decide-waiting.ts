/**
 * The decision for a pod that exists. It differs from admission in three ways. The pod cannot be denied any more, so images
 * without a common architecture leave it pending even if policy says `deny`. Its gate means that it waits for unknown images,
 * whatever policy says now. When its time is over, the fallback applies.
 */
import type { FactsByImage, FactsWanted } from '../../cluster/facts-of-pod.ts';
import { pullSecretNames } from '../../credentials/sources/pull-secrets.ts';
import { serviceAccountOf } from '../../credentials/credential.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { decide } from '../../placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../../placement/decision.ts';
import { imagesOf } from '../../placement/pod/images.ts';
import { skipReasonOf } from '../../placement/rules/skip.ts';
import type { Policies } from '../../policy/effective/policies.ts';
import type { Caches } from '../caches/caches.ts';

export interface WaitingInput extends Omit<PlacementInput, 'facts' | 'pod'> {
  readonly pod: Pod;
}

const noLabels: Readonly<Record<string, string>> = {};
const noFacts: FactsByImage = new Map();

/** What a decision needs besides image facts. */
export function inputOf(pod: Pod, caches: Pick<Caches, 'namespaces'>, policies: Policies): WaitingInput {
  const namespace = pod.metadata?.namespace ?? '';
  const namespaceLabels = caches.namespaces.get('', namespace)?.labels ?? noLabels;
  const policy = policies.policyOf({ namespace, namespaceLabels, labels: pod.metadata?.labels });
  return { pod, namespace, namespaceLabels, policy, waiting: true };
}

/** The image facts that it needs. */
export function wantedOf({ pod, namespace }: WaitingInput, budgetMs: number): FactsWanted {
  return {
    uses: imagesOf(pod.spec),
    namespace,
    pullSecrets: { names: pullSecretNames(pod.spec) },
    serviceAccount: serviceAccountOf(namespace, pod.spec.serviceAccountName),
    budgetMs,
  };
}

/** The decision for a pod that is skipped and needs no facts; `undefined` for any other. */
export function skippedOf(input: WaitingInput): PlacementDecision | undefined {
  return skipReasonOf(input) === undefined ? undefined : decideWaiting(input, noFacts, false);
}

/**
 * Decides.
 * @param expired whether it has waited as long as it may
 * @returns outcome `gated` if it has to wait; never `denied`
 */
export function decideWaiting(input: WaitingInput, facts: FactsByImage, expired: boolean): PlacementDecision {
  const { policy } = input;
  const { onNoCommonArchitecture } = policy;
  return decide({
    ...input,
    facts: (image) => facts.get(image),
    policy: {
      ...policy,
      onUnknownImage: expired ? 'fallback' : 'gate',
      onNoCommonArchitecture: onNoCommonArchitecture === 'deny' ? 'pend' : onNoCommonArchitecture,
    },
  });
}
