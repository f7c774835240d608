/** A stream of new pods while archwright changes. */
import { whilePodsAreMade } from './pods.ts';
import { step, tell } from './report.ts';
import type { World } from './world.ts';

/** A step during which pods are made, of which none may be refused or be without a node in the end. */
export async function duringStream(
  world: World,
  name: string,
  happens: () => Promise<unknown>,
): Promise<void> {
  const { cluster, images } = world;
  const wanted = [
    { images: [images['public/multi'] ?? ''], preferred: 'arm64' },
    { images: [images['plugin/multi'] ?? ''], preferred: 'arm64', pullPolicy: 'Always' },
  ];
  const { made, gated, placed, slowestMs } = await step(`${name}: no pod is refused or stuck`, () =>
    whilePodsAreMade(cluster, wanted, happens),
  );
  tell({
    fact: `${name}: of ${made} pods ${placed} placed at once, ${gated} gated, the slowest was made in ${slowestMs} ms`,
  });
}
