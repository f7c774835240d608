/**
 * Cleans up after another program that is stopped or removed: its gates would keep pods from being scheduled forever, its taints would
 * keep new pods off their nodes. Nothing of archwright is touched.
 */
import { guardedPatch } from '../../kube/api/change.ts';
import type { Patch } from '../../kube/api/client.ts';
import type { Node } from '../../kube/api/objects.ts';
import { removeGates } from './gates.ts';
import type { CleanReport } from './report.ts';
import { CleanRun, type CleanOptions } from './run.ts';
import { removeTaints } from './taints.ts';

interface Leftovers {
  readonly gate?: string;
  readonly taintKey?: string;
}

/** What each program leaves behind. Noe and tolerable leave nothing that blocks a pod. */
export const otherPrograms: Readonly<Record<string, Leftovers>> = {
  'multiarch-tuning-operator': { gate: 'multiarch.openshift.io/scheduling-gate' },
  'archaware-controller': { taintKey: 'supported-arch' },
};

/**
 * Removes what another program left.
 * @param leftovers one of `otherPrograms`
 * @throws the signal's reason when it aborts
 */
export async function cleanOtherProgram(
  options: CleanOptions,
  { gate, taintKey }: Leftovers,
): Promise<CleanReport> {
  const run = new CleanRun(options);
  if (gate !== undefined) await run.step('gates', () => removeGates(run, gate));
  if (taintKey !== undefined)
    await run.step('taints', () => removeTaints(run, (node) => withoutTaints(node, taintKey)));
  return run.tallies.report();
}

/** Removes every taint with the key: it names an architecture, whatever its value and effect are. */
function withoutTaints(node: Node, key: string): Patch | undefined {
  const positions = (node.spec?.taints ?? []).flatMap((taint, index) => (taint.key === key ? [index] : []));
  // From the last to the first, so that the positions of the others stay.
  const operations = positions.toReversed().map((index) => ({ op: 'remove', path: `/spec/taints/${index}` }));
  return operations.length === 0 ? undefined : guardedPatch(node, operations);
}
