/** Which nodes can pull the images of a pod that is about to be let go, where policy wants to know. */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { createPullableNodes } from '../../cluster/pullable-nodes.ts';
import type { Leading } from '../leadership/leading.ts';
import { wantedOf, type WaitingInput } from './decide-waiting.ts';

export interface Pullability {
  /**
   * The input with what is known of the nodes; waits for a second at most. Nothing known leaves nobody out.
   * @param expired whether the pod has waited as long as it may
   */
  wherePullable(input: WaitingInput, facts: FactsByImage, expired: boolean): Promise<WaitingInput>;
}

/** Groups that were never asked about a repository answer within a second, or count as not known. */
const budgetMs = 1000;
/** When the time of thousands of pods is over, a group that does not answer must not hold each of them. */
const lastBudgetMs = 20;

export function createPullability(leading: Leading): Pullability {
  const { fleet, log, pullSecrets, caches } = leading;
  if (fleet === undefined) return { wherePullable: (input) => Promise.resolve(input) };
  const pullableNodes = createPullableNodes({
    fleet,
    pullSecrets,
    nodeHostname: (node) => caches.nodes.get('', node)?.hostname,
    log,
  });
  return {
    wherePullable: async (input, facts, expired) => {
      if (!input.policy.requirePullableNodes) return input;
      const found = await pullableNodes({ ...wantedOf(input, expired ? lastBudgetMs : budgetMs), facts });
      return { ...input, pullability: (image) => found.get(image) };
    },
  };
}
