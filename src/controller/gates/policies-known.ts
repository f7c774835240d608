/**
 * What a new leader waits for before it decides: namespaces and custom resources, on which the policy of each pod depends,
 * and nodes, which decide between several possible terms. Their lists come by watches of their own, often after that of the
 * pods, and a pod that was decided without them would have lost its gate by a policy that is not its own.
 */
import type { Clock } from '../../async/clock.ts';
import type { Leading } from '../leadership/leading.ts';

/** What cannot be listed, such as for want of a right, must not hold pods. */
const patienceMs = 10_000;

/** Resolves when they are known, the time is over, or leadership ends; never rejects. */
export function policiesKnown(
  { caches, signal, log }: Pick<Leading, 'caches' | 'signal' | 'log'>,
  startTimer: Clock['timer'],
): Promise<void> {
  const { namespaces, clusterConfigs, podConfigs, nodes } = caches;
  return new Promise((resolve) => {
    const cancel = startTimer(patienceMs, () => {
      log.warn('namespaces, nodes or custom resources cannot be listed; gated pods are decided without them');
      resolve();
    });
    const all = [namespaces, clusterConfigs, podConfigs, nodes].map((each) => each.ready(signal));
    void Promise.all(all)
      .catch(() => undefined)
      .finally(() => {
        cancel();
        resolve();
      });
  });
}
