/** Pods that are created all the time while something fails, each with a new image. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import { isGated, podOf } from '../pods.ts';
import { allPlaced, graceMs, kinds, maxGateMs, type Ground } from './crowd.ts';

const everyMs = 250;

/** Starts it. A refused pod is a fault of the webhook or of its certificate. */
export function startLoad(t: Test, { cluster, images, pods }: Ground) {
  const ending = new AbortController();
  const refused: string[] = [];
  const created: { readonly name: string; readonly architectures: readonly string[] }[] = [];
  const gatedAt = new Map<string, number>();
  let longestMs = 0;
  pods.onChange(({ object, at }) => {
    const name = object.metadata?.name ?? '';
    if (!name.startsWith('load-')) return;
    if (isGated(object) && !gatedAt.has(name)) gatedAt.set(name, at);
    if (!isGated(object) && gatedAt.has(name))
      longestMs = Math.max(longestMs, at - (gatedAt.get(name) ?? at));
  });

  const run = async (): Promise<void> => {
    for (let index = 0; !ending.signal.aborted; index += 1) {
      const name = `load-${index}`;
      const architectures = kinds[index % kinds.length] ?? [];
      await cluster.create(podOf(name, images.push(name, architectures))).then(
        () => created.push({ name, architectures }),
        (error: unknown) => refused.push(error instanceof Error ? error.message : String(error)),
      );
      await pause(everyMs);
    }
  };
  const running = run();

  return {
    /** Ends it, and checks: no pod was refused or gated too long, and each requires what its image can run on. */
    end: async (): Promise<void> => {
      ending.abort();
      await running;
      const gated = `${gatedAt.size} of them gated, for ${Math.round(longestMs)} ms at most`;
      t.comment(`${created.length} pods, ${gated}`);
      t.same(refused.slice(0, 5), [], `${refused.length} refused`);
      t.ok(created.length > 100, `${created.length} pods`);
      await allPlaced(t, pods, 'load', created, maxGateMs + graceMs);
      t.ok(longestMs <= maxGateMs + graceMs, 'none was gated longer than it may be');
    },
  };
}
