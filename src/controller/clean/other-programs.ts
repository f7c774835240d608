/**
 * Cleaning up after a program that was moved over from, and that is gone or stopped already: its gates would keep pods from
 * being scheduled for ever, its taints would keep new pods off their nodes. Nothing of archwright's is touched.
 */
import type { Node } from '../../kube/api/objects.ts';
import { createCleaning, type Cleaning } from './steps.ts';
import type { CleanOptions, CleanReport } from './clean.ts';
import { removeGates } from './gates.ts';
import { paths } from '../../kube/api/paths.ts';

interface Leftovers {
  readonly gate?: string;
  readonly taintKey?: string;
}

/** What each program leaves behind. Noe and tolerable leave nothing that holds a pod up. */
export const otherPrograms: Readonly<Record<string, Leftovers>> = {
  'multiarch-tuning-operator': { gate: 'multiarch.openshift.io/scheduling-gate' },
  'archaware-controller': { taintKey: 'supported-arch' },
};

/**
 * Removes what another program left.
 * @param leftovers one of `otherPrograms`
 * @returns what was found and done, step by step
 * @throws the signal's reason when it aborts
 */
export async function cleanOtherProgram(
  options: CleanOptions,
  { gate, taintKey }: Leftovers,
): Promise<CleanReport> {
  const cleaning = createCleaning(options);
  if (gate !== undefined) await cleaning.step('gates', () => removeGates(cleaning, gate));
  if (taintKey !== undefined) await cleaning.step('taints', () => removeTaintsOf(cleaning, taintKey));
  const steps = cleaning.report();
  return { dryRun: options.dryRun, complete: steps.every(({ failures }) => failures.length === 0), steps };
}

/** Every taint with the key: it names an architecture whatever its value and effect are. */
async function removeTaintsOf(cleaning: Cleaning, key: string): Promise<void> {
  await cleaning.each(cleaning.list<Node>(paths.nodes(), {}), async (listed) => {
    const name = listed.metadata?.name ?? '';
    if (positionsOf(listed, key).length === 0) return;
    let node: Node | undefined = listed;
    await cleaning.change('taints', `taint of node ${name}`, async (client, signal) => {
      const path = paths.nodes(name);
      node ??= await client.get<Node>(path, { signal });
      const positions = positionsOf(node, key);
      const version = node.metadata?.resourceVersion;
      // Whatever comes of this try, the next one starts from the node as it is then.
      node = undefined;
      if (positions.length === 0) return;
      const body = [
        { op: 'replace', path: '/metadata/resourceVersion', value: version },
        // From the end, so that the positions of the others stay.
        ...positions.toReversed().map((index) => ({ op: 'remove', path: `/spec/taints/${index}` })),
      ];
      await client.patch(path, { type: 'json', body }, { signal });
    });
  });
}

function positionsOf({ spec }: Node, key: string): readonly number[] {
  return (spec?.taints ?? []).flatMap((taint, index) => (taint.key === key ? [index] : []));
}
