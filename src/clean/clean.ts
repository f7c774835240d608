/**
 * `archwright clean` removes only what archwright put into a cluster. Each step makes the previous one final:
 *
 * 1. `lease.ts` takes the Lease, even from a leader: controllers stop writing and webhooks stop gating.
 * 2. `removals.ts` removes the webhook configuration; no pod gets a gate after that.
 * 3. Our gate is removed from every pod, until no new one appears: an API server may call the webhook a
 *    second or two longer, and a deposed leader may finish what it began.
 * 4. What the features leave (`leftovers` of each): taints and labels of nodes, then objects.
 * 5. `restart-pods.ts`, on request: restarts the workloads whose pods carry our tolerations.
 * 6. Deletes the Lease. Controllers that saw clean hold it take no new one (`../controller/lead/candidacy.ts`).
 *
 * Each step finds what is left, so the next run continues an interrupted one. The report lists what cannot be
 * removed; everything else is removed. After a failure, the Lease is released, not deleted: running
 * controllers resume and open the remaining gates.
 */
import { ownNames, keys } from '../names/keys.ts';
import { guardedPatch } from '../kube/api/change.ts';
import type { Patch } from '../kube/api/client.ts';
import type { KubeObject, Node } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { features } from '../controller/features.ts';
import { takeLease } from './lease.ts';
import {
  removeFromNodes,
  removeGates,
  removeOthers,
  removeOwnObjects,
  removeWebhooks,
  webhooksStep,
} from './removals.ts';
import { restartPods } from './restart-pods.ts';
import { CleanRun, type CleanOptions, type CleanReport } from './run.ts';

/** API servers follow a changed webhook configuration within a second or two (measured: 1 to 2 s). */
const staleWebhookMs = 5000;

const gatesIntervalMs = 1000;

/** If new gates still appear after so long without the configuration, something else adds them. */
const patienceMs = 60_000;

/** @throws the signal's reason if it aborts; an error if another process takes the Lease */
export async function clean(options: CleanOptions): Promise<CleanReport> {
  const leftovers = features.flatMap((feature) => feature.leftovers ?? []);
  const { lease: leaseName } = ownNames(options.configuration);
  const lost = new AbortController();
  const run = new CleanRun({ ...options, signal: AbortSignal.any([options.signal, lost.signal]) });
  const lease = await run.step('lease', () => takeLease(run, leaseName, lost));
  let complete = false;
  try {
    await stopGating(run, lease?.deposedMs ?? 0);
    for (const { nodes } of leftovers) {
      if (nodes === undefined) continue;
      await run.step(nodes.step, async () => {
        const readLease = () => run.read<KubeObject>(paths.leases(options.namespace, leaseName));
        return removeFromNodes(run, nodes, await nodes.removal(options.configuration, readLease));
      });
    }
    for (const { others } of leftovers)
      if (others) await run.step(others.step, () => removeOthers(run, others));
    await run.step('own objects', () => removeOwnObjects(run));
    if (options.restartPods) await run.step('restarted workloads', () => restartPods(run));
    ({ complete } = run.report());
  } finally {
    await lease?.end(complete ? 'delete' : 'release');
  }
  return run.report();
}

/**
 * Removes webhook configuration and gates until no new gate appears.
 * @param deposedMs for how long a deposed leader may still write
 */
async function stopGating(run: CleanRun, deposedMs: number): Promise<void> {
  const { clock, dryRun, progress } = run.options;
  const quietAt = clock.monotonic() + Math.max(staleWebhookMs, deposedMs);
  let isWaiting = false;
  for (;;) {
    await run.step(webhooksStep, () => removeWebhooks(run));
    const removed = await run.step('gates', () => removeGates(run, keys.gate));
    const now = clock.monotonic();
    if (dryRun || removed === undefined || (removed === 0 && now >= quietAt)) return;
    if (now >= quietAt + patienceMs) {
      run.fail('gates', 'pods', 'new pods still get our gate: is another archwright running?');
      return;
    }
    if (removed === 0 && !isWaiting) {
      progress(`looking for late gates for another ${Math.ceil((quietAt - now) / 1000)} s`);
      isWaiting = true;
    }
    await clock.sleep(gatesIntervalMs, run.signal);
  }
}

/** What other programs leave. Noe and tolerable leave nothing that blocks a pod. */
export const otherPrograms: Readonly<Record<string, { readonly gate?: string; readonly taintKey?: string }>> =
  {
    'multiarch-tuning-operator': { gate: 'multiarch.openshift.io/scheduling-gate' },
    'archaware-controller': { taintKey: 'supported-arch' },
  };

/**
 * Cleans up after another program that is stopped or removed: its gates would block pods forever, and its
 * taints would keep new pods off their nodes. Nothing of archwright is touched.
 * @throws the signal's reason when it aborts
 */
export async function cleanOtherProgram(
  options: CleanOptions,
  { gate, taintKey }: (typeof otherPrograms)[string],
): Promise<CleanReport> {
  const run = new CleanRun(options);
  if (gate !== undefined) await run.step('gates', () => removeGates(run, gate));
  if (taintKey !== undefined)
    await run.step('taints', () =>
      removeFromNodes(run, { step: 'taints', what: 'taint' }, (node) => withoutTaints(node, taintKey)),
    );
  return run.report();
}

/** Removes every taint with the key: it names an architecture, whatever its value and effect are. */
function withoutTaints(node: Node, key: string): Patch | undefined {
  const positions = (node.spec?.taints ?? []).flatMap((taint, index) => (taint.key === key ? [index] : []));
  // From the last to the first, so that the positions of the others stay.
  const operations = positions.toReversed().map((index) => ({ op: 'remove', path: `/spec/taints/${index}` }));
  return operations.length === 0 ? undefined : guardedPatch(node, operations);
}
