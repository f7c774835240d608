/** All setups of a run: those written by hand, and as many generated cases as wanted. */
import { generateSetup } from './generate.ts';
import { createRandom } from './random.ts';
import type { Setup } from './setup.ts';
import { writtenSetups } from './written-setups.ts';

/** A kubelet takes longer to start than a pod takes, but files of the node are the same for its whole life. */
const casesPerSetup = 10;

/** @param cases number of generated ones */
export function setups(seed: number, cases: number): readonly Setup[] {
  const random = createRandom(seed);
  const generated = Array.from({ length: Math.ceil(cases / casesPerSetup) }, (_, index) =>
    generateSetup(random, `g${index}`, Math.min(casesPerSetup, cases - index * casesPerSetup)),
  );
  return [...writtenSetups, ...generated];
}
