/**
 * Running pods that the webhook skips, and will skip again when they are replaced: they opted out, the webhook is not called for
 * them, or nothing about them could be decided. Features that change running pods check this first.
 */
import { skipReasonOf } from '../../placement/rules/skip.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';
import { createWebhookScope } from './webhook-selectors.ts';

/** @returns reads the configuration that is in force now, and returns whether a pod is skipped */
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
