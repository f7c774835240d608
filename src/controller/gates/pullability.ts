/** Leaves out nodes that cannot pull the images of a pod that is about to lose its gate, if its policy wants that. */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { createPullableNodes } from '../../cluster/pullable-nodes.ts';
import type { Leading } from '../leadership/leading.ts';
import { wantedOf, type WaitingInput } from './decide-waiting.ts';

/**
 * Adds to the input which nodes can pull; waits a second at most. A node without an answer is not left out.
 * @param expired whether the pod has waited as long as it may
 */
export type WithPullability = (
  input: WaitingInput,
  facts: FactsByImage,
  expired: boolean,
) => Promise<WaitingInput>;

/** Groups that get their first request about a repository answer within a second, or count as not known. */
const budgetMs = 1000;
/** When the time of thousands of pods is over, a group that does not answer must not hold each of them. */
const lastBudgetMs = 20;

export function createPullability({ fleet, log, pullSecrets, caches }: Leading): WithPullability {
  if (fleet === undefined) return (input) => Promise.resolve(input);
  const pullableNodes = createPullableNodes({
    fleet,
    pullSecrets,
    nodeHostname: (node) => caches.nodes.get('', node)?.hostname,
    log,
  });
  return async (input, facts, expired) => {
    if (!input.policy.requirePullableNodes) return input;
    const found = await pullableNodes({ ...wantedOf(input, expired ? lastBudgetMs : budgetMs), facts });
    return { ...input, pullability: (image) => found.get(image) };
  };
}
