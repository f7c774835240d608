/** Input of the webhook's decision about a pod, from the leader's caches. */
import type { ObjectMeta } from '../../kube/api/objects.ts';
import type { RunningPod } from '../state/cached.ts';
import type { LeaderContext } from '../lead/feature.ts';

/** @param metadata of a pod: its labels, and for rollouts its owner */
export function contextOf(
  { caches, policies, nodeClasses }: Pick<LeaderContext, 'caches' | 'policies' | 'nodeClasses'>,
  namespace: string,
  { labels, ownerReferences: owners }: Pick<ObjectMeta, 'labels' | 'ownerReferences'>,
) {
  const namespaceLabels = caches.namespaces.get('', namespace) ?? {};
  const policy = policies.policyOf({ namespace, namespaceLabels, labels, owners });
  const nodes = nodeClasses();
  return { namespace, namespaceLabels, policy, ...(nodes && { nodes }) };
}

/** Without its required node affinity. */
export function podOf({ labels, annotations, os, nodeChoice, images }: RunningPod) {
  const containers = images.map(({ image, pullPolicy, usedBy }) => {
    return { name: usedBy, image, ...(pullPolicy && { imagePullPolicy: pullPolicy }) };
  });
  return {
    metadata: { labels, annotations },
    spec: { containers, os: { name: os }, nodeSelector: nodeChoice?.nodeSelector ?? {} },
  };
}
