/**
 * A new leader waits for namespaces and custom resources, because the policy of each pod depends on them, and for nodes,
 * which decide between several possible terms. Their lists come by their own watches, often after that of the pods. A pod
 * that was decided without them would lose its gate by the wrong policy.
 */
import type { Leading } from '../leadership/leading.ts';

/** A kind that cannot be listed, for example without the right to, must not hold pods. */
const patienceMs = 10_000;

/** Resolves when they are listed, the time is over, or leadership ends; never rejects. */
export function policiesKnown({
  caches,
  signal,
  clock,
  log,
}: Pick<Leading, 'caches' | 'signal' | 'clock' | 'log'>): Promise<void> {
  const { namespaces, clusterConfigs, podConfigs, nodes } = caches;
  return new Promise((resolve) => {
    const cancel = clock.timer(patienceMs, () => {
      log.warn('namespaces, nodes or custom resources cannot be listed; gated pods are decided without them');
      resolve();
    });
    const all = [namespaces, clusterConfigs, podConfigs, nodes].map((each) => each.ready(signal));
    void Promise.allSettled(all).then(() => {
      cancel();
      resolve();
    });
  });
}
