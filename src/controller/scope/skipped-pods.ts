/**
 * Running pods that the webhook leaves alone, and whose successors it will leave alone: because somebody said so, because the webhook
 * is not called for them, or because nothing of them could be decided. Who does something about running pods asks here first.
 */
import { skipReasonOf } from '../../placement/rules/skip.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import { createWebhookScope } from './webhook-selectors.ts';

/** @returns a function that looks at what is in force now; that one tells of each pod */
export function createSkippedPods(
  leading: Pick<Leading, 'caches' | 'policies' | 'configuration' | 'clock' | 'log'>,
): () => Promise<(pod: RunningPod) => boolean> {
  const { caches, policies } = leading;
  const sight = createWebhookScope(leading);
  return async () => {
    const sees = await sight();
    return (pod) => {
      const { namespace, labels, annotations, nodeChoice, images } = pod;
      const namespaceLabels = caches.namespaces.get('', namespace)?.labels ?? {};
      if (!sees(pod, namespaceLabels)) return true;
      const policy = policies.policyOf({ namespace, namespaceLabels, labels });
      const metadata = { ...(labels && { labels }), ...(annotations && { annotations }) };
      const spec = {
        nodeSelector: nodeChoice?.nodeSelector ?? {},
        containers: images.map(({ image, pullPolicy, usedBy }) => ({
          name: usedBy,
          image,
          ...(pullPolicy && { imagePullPolicy: pullPolicy }),
        })),
      };
      return skipReasonOf({ pod: { metadata, spec }, namespace, namespaceLabels, policy }) !== undefined;
    };
  };
}
