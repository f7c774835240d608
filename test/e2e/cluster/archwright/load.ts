/** Pods that are created without end, by dry runs. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import type { Cluster } from '../harness.ts';
import { tryPod } from './archwright.ts';

/** Creates pods until `end`, enough at once to need new connections. */
export function createPods(t: Test, cluster: Cluster) {
  const ending = new AbortController();
  const refused: string[] = [];
  let pods = 0;
  const one = (): Promise<void> =>
    tryPod(cluster).then(
      () => void (pods += 1),
      (error: unknown) => void refused.push(String(error)),
    );
  const running = (async () => {
    while (!ending.signal.aborted) {
      await Promise.all(Array.from({ length: 12 }, one));
      await pause(100);
    }
  })();
  const stop = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  t.teardown(stop);
  return {
    count: (): number => pods,
    /** Ends it, and checks that no pod was refused. */
    end: async (): Promise<void> => {
      await stop();
      t.comment(`${pods} pods`);
      t.strictSame(refused.slice(0, 5), [], `${refused.length} refused`);
    },
  };
}
