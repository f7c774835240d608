/**
 * A rollout's workloads: their pods, how many the architecture should have, and what prevents that. A workload
 * that it names may have no pods: the name is misspelled, or in an older rollout.
 */
import { concurrently } from '../../../async/concurrently.ts';
import { printable } from '../../../names/printable.ts';
import { selects } from '../../../policy/resources/schemas.ts';
import { wantedPods, type Rollout } from '../../../policy/resources/rollout.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { movableOf, type Movable } from './blocked.ts';
import { workloadsOf, type PodCount, type RolledPod, type RolledWorkload } from './pods.ts';
import type { Progress } from './progress.ts';
import type { WorkloadStatus } from './status.ts';
import type { VolumesPermit } from './volumes.ts';

/** So many of the wanted pods may be missing, and one if not all pods are wanted. */
const slack = 0.05;
/** Each volume costs up to three requests to the API server. */
const workers = 16;

export interface Observation extends Movable {
  readonly workload: RolledWorkload;
  readonly wanted: number;
  /** How many the step wants, whatever prevents it. */
  readonly ofStep: number;
  /** Pods on the architecture, or with successors that can be there: at most as many as the step wants. */
  readonly possible: ReadonlySet<RolledPod>;
}

/** @throws KubeError */
export async function lookAt(
  rollout: Rollout,
  before: Progress | undefined,
  count: PodCount,
  volumesPermit: VolumesPermit,
  leader: LeaderContext,
): Promise<readonly Observation[]> {
  const { architecture, steps } = rollout;
  const step = steps[Math.min(before?.step ?? 0, steps.length - 1)] ?? { percent: 100 };
  const workloads = workloadsOf(rollout, count);
  // All at once, so that images that are not known cost one wait. Memory limits the lookups under way.
  const all = await Promise.all(
    workloads.map(async (workload) => {
      const running = workload.pods.flatMap((pod) => pod.running ?? []);
      const [newest] = running.toSorted((a, b) => b.createdAt - a.createdAt);
      const movable = newest ? await movableOf(leader, newest, rollout, before?.startedAt) : {};
      return { workload, movable };
    }),
  );
  return concurrently(all, workers, async ({ workload, movable }): Promise<Observation> => {
    const { pods } = workload;
    const ofStep = wantedPods(step, pods.length);
    const isOpen = movable.blocked === undefined;
    const possible = await possibleOf(isOpen ? pods : [], ofStep, architecture, volumesPermit);
    const isElsewhere = isOpen && possible.size === 0 && pods.length > 0;
    const wanted = Math.min(ofStep, possible.size);
    const blocked = isElsewhere && { blocked: `its volumes cannot be used on ${architecture}` };
    return { workload, wanted, ofStep, possible, ...movable, ...blocked };
  });
}

/** Reads no more volumes than are needed for `wanted` pods. */
async function possibleOf(
  pods: readonly RolledPod[],
  wanted: number,
  architecture: string,
  volumesPermit: VolumesPermit,
): Promise<ReadonlySet<RolledPod>> {
  const possible = new Set(pods.filter(({ isTarget, running }) => isTarget || !running));
  for (const pod of pods) {
    if (possible.size >= Math.max(1, wanted)) break;
    if (pod.running && (await volumesPermit(pod.namespace, pod.running.claims, architecture)))
      possible.add(pod);
  }
  return possible;
}

/** Why fewer pods can be moved than the step wants; `undefined`: all of them can. */
export function leftBehind({ blocked, wanted, ofStep }: Observation): string | undefined {
  if (blocked !== undefined || wanted === ofStep) return blocked;
  return `${wanted} of ${ofStep} pods can be moved: the volumes of the others cannot be used there`;
}

/**
 * What the step waits for in a workload.
 * @param delay why pods that are not there are not moved now
 * @returns `undefined`: enough pods are on the architecture, and as many of them are ready as of the others
 */
export function heldBy(
  { workload: { pods }, wanted, blocked }: Observation,
  delay: string,
): string | undefined {
  if (blocked !== undefined) return undefined;
  const targets = pods.filter(({ isTarget }) => isTarget);
  const others = pods.filter(({ isTarget }) => !isTarget);
  const least = wanted > 1 && wanted < pods.length ? 1 : 0;
  const missing = Math.max(least, Math.floor(wanted * slack));
  const readyOthers = others.length === 0 ? 1 : others.filter(({ ready }) => ready).length / others.length;
  const enough = wanted - missing;
  if (targets.length < enough) return `${targets.length} of ${wanted} pods moved; ${delay}`;
  const ready = targets.filter((pod) => pod.ready).length;
  const enoughReady = Math.ceil(enough * readyOthers);
  if (ready >= enoughReady) return undefined;
  const waiting = targets.find((pod) => !pod.ready);
  const why = waiting?.running ? 'is not ready' : 'has no node';
  return `${ready} of ${targets.length} moved pods are ready, but this step needs ${enoughReady}: ${printable(waiting?.name ?? '', 100)} ${why}`;
}

/** @param held what holds its pods; `undefined`: nothing */
export function statusOf(
  { workload: { name, pods }, wanted, ...seen }: Observation,
  held?: string,
): WorkloadStatus {
  const targets = pods.filter(({ isTarget }) => isTarget);
  const ready = targets.filter((pod) => pod.ready).length;
  const blocked = seen.blocked ?? held;
  const counts = { name, pods: pods.length, moved: targets.length, ready, wanted };
  return { ...counts, ...(blocked !== undefined && { blocked }) };
}

/** @returns a status for each name without pods, and the message of a rollout that has no pods at all */
export function missingIn(
  rollout: Pick<Rollout, 'name' | 'selector' | 'names'>,
  found: readonly RolledWorkload[],
  { pods, rollouts }: PodCount,
): { readonly workloads: readonly WorkloadStatus[]; readonly message: string } {
  const has = new Set(found.map(({ name }) => name.slice(name.indexOf('/') + 1)));
  const names = [...(rollout.names ?? [])].filter((name) => !has.has(name));
  if (names.length === 0 && found.length > 0) return { workloads: [], message: '' };
  const own = rollouts.findIndex(({ name }) => name === rollout.name);
  const inOlder = pods.flatMap(({ labels, workload, first }) => {
    const older = first < own && selects(rollout.selector, labels) ? rollouts[first] : undefined;
    return older ? [{ workload: workload.name, older: older.name }] : [];
  });
  const reasonOf = (name: string): string => {
    const of = inOlder.find(({ workload }) => workload === name);
    if (of) return `its pods are in the older rollout ${of.older}`;
    return pods.some(({ workload }) => workload.name === name)
      ? 'the selector matches none of its pods'
      : 'no workload of this name has pods';
  };
  const workloads = names.map((name) => {
    return { name, pods: 0, moved: 0, ready: 0, wanted: 0, blocked: reasonOf(name) };
  });
  const others = [...new Set(inOlder.map(({ older }) => older))];
  const elsewhere =
    others.length === 0 ? [] : [`the pods that it selects are in older rollouts: ${others.join(', ')}`];
  const details =
    rollout.names === undefined ? elsewhere : workloads.map(({ name, blocked }) => `${name}: ${blocked}`);
  return { workloads, message: ['it has no pods so far', ...details].join('; ') };
}
