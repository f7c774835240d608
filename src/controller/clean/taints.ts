/** Takes our taints off the nodes. */
import { fencedClient } from '../../kube/api/fenced.ts';
import type { RateLimiter } from '../../async/rate-limiter.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import { removeTaints } from '../taints/remove.ts';
import { reasonOf, type Cleaning } from './steps.ts';

/** @throws KubeError where nodes cannot be listed */
export async function cleanTaints(
  cleaning: Cleaning,
  { taintKey }: Pick<Configuration, 'taintKey'>,
  limiter: RateLimiter,
): Promise<void> {
  const { signal, dryRun, sleep } = cleaning;
  const { failed } = await removeTaints({
    client: fencedClient({ client: cleaning.client, leading: signal, limiter }),
    keys: [taintKey],
    signal,
    dryRun,
    sleep,
    progress: (node) => cleaning.done('taints', `taint of node ${node}`),
  });
  for (const { node, error } of failed) cleaning.fail('taints', `node ${node}`, reasonOf(error));
}
