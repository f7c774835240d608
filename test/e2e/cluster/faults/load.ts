/** Pods that keep coming while something goes wrong, each of an image that nobody knows yet. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import { graceMs, isGated, isRight, kinds, maxGateMs, summary, type Ground } from './crowd.ts';

export interface Load {
  /** Ends it, and checks: none was refused, none waited longer than it may, each requires what its image can run on. */
  end(): Promise<void>;
}

const everyMs = 250;

/** Begins it. What is refused is a fault of the webhook, its certificate, or who trusts whom. */
export function startLoad(t: Test, { cluster, images, pods }: Ground): Load {
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
      const image = images.push(name, architectures);
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name } };
      await cluster.create({ ...pod, spec: { containers: [{ name: 'app', image }] } }).then(
        () => created.push({ name, architectures }),
        (error: unknown) => refused.push(error instanceof Error ? error.message : String(error)),
      );
      await pause(everyMs);
    }
  };
  const running = run();

  return {
    end: async () => {
      ending.abort();
      await running;
      t.comment(
        `${created.length} pods, ${gatedAt.size} of them gated, for ${Math.round(longestMs)} ms at most`,
      );
      t.same(refused.slice(0, 5), [], `${refused.length} refused`);
      t.ok(created.length > 100, `${created.length} pods`);
      const now = (name: string) => pods.objects.get(`default/${name}`);
      const unbound = (): typeof created => created.filter(({ name }) => !now(name)?.spec.nodeName);
      await pods
        .until('all are bound', () => unbound().length === 0, maxGateMs + graceMs)
        .catch(() => undefined);
      t.same(
        unbound().map(({ name }) => summary(now(name))),
        [],
        'no pod is lost',
      );
      t.ok(longestMs <= maxGateMs + graceMs, 'none was gated longer than it may be');
      t.same(
        created
          .filter((one) => !isRight(now(one.name), one.architectures))
          .map(({ name }) => summary(now(name))),
        [],
        'every pod requires what its image can run on',
      );
    },
  };
}
