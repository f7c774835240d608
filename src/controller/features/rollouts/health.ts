/**
 * Compares a workload's pods on the architecture of a rollout with those on others at the same time. A pod is
 * unhealthy if it restarts too often, is not ready in time, or took much longer. Every pod counts, also one that
 * was there before; only its earlier restarts and start do not. Only pods of one version are compared: a bad
 * release is not a bad architecture. Exec format errors and missing CPU levels count at once.
 */
import type { Rollout } from '../../../policy/resources/rollout.ts';
import { formatDuration } from '../../../names/quantity.ts';
import { printable } from '../../../names/printable.ts';
import { suspectsOf } from '../../pods/suspects.ts';
import type { RolledPod, RolledWorkload } from './pods.ts';

/** So many unhealthy pods decide, or all of them if they are fewer. */
const enough = 3;
/** The time to become ready differs by as much from one start to the next. */
const leastSlowMs = 30_000;

export const rollbackReasons = ['Unhealthy', 'BrokenImage'] as const;

export interface RollbackVerdict {
  readonly reason: (typeof rollbackReasons)[number];
  readonly message: string;
}

export interface HealthInput {
  readonly workload: RolledWorkload;
  readonly rollout: Pick<Rollout, 'architecture' | 'unhealthy' | 'tolerance'>;
  /** When this attempt began. */
  readonly since: number;
  readonly now: number;
  /** Restarts of a pod since this attempt began. */
  readonly restartsOf: (pod: RolledPod) => number;
  /** An image that is recorded as broken on the architecture; `undefined`: none. */
  readonly broken: string | undefined;
}

/** @returns `undefined`: the architecture does no harm so far */
export function verdictOf(input: HealthInput): RollbackVerdict | undefined {
  const { workload, rollout, broken } = input;
  const targets = workload.pods.filter(({ isTarget }) => isTarget);
  const crashed = targets.find(({ running }) => running && suspectsOf(running).length > 0);
  const failed = targets.find(({ running }) => running && suspectsOf(running).some(({ failure }) => failure));
  if (failed || (crashed && broken)) {
    const why = broken ?? 'its program is not built for the CPU of the node';
    return { reason: 'BrokenImage', message: `${workload.name}: pod ${(failed ?? crashed)?.name}: ${why}` };
  }
  const all = workload.pods.filter(({ isTarget }) => !isTarget);
  const judge = judgeOf(input, all);
  const isBad = (pod: RolledPod): boolean => judge(pod) !== undefined;
  const bad = targets.filter(isBad);
  if (bad.length < Math.max(1, Math.min(enough, targets.length))) return undefined;
  const [others, compared] = sameVersions(bad, all, targets);
  const badOthers = others.filter(isBad).length;
  const share = (100 * bad.length) / compared.length;
  const shareOfOthers = others.length === 0 ? 0 : (100 * badOthers) / others.length;
  if (share - shareOfOthers <= rollout.tolerance) return undefined;
  const [first] = bad.flatMap((pod) => judge(pod) ?? []);
  const than = others.length === 0 ? 'there are no others' : `of the others ${badOthers} of ${others.length}`;
  const message = `${workload.name}: ${bad.length} of ${compared.length} pods on ${rollout.architecture} are unhealthy, ${than}: ${first}`;
  return { reason: 'Unhealthy', message };
}

type Pods = readonly RolledPod[];

/** Those of the ReplicaSets that have bad pods; all, if these have none on other architectures. */
function sameVersions(bad: Pods, others: Pods, targets: Pods): readonly [others: Pods, targets: Pods] {
  const versions = new Set(bad.map(({ owner }) => owner.uid));
  const isSame = ({ owner }: RolledPod): boolean => versions.has(owner.uid);
  const same = others.filter(isSame);
  return same.length === 0 ? [others, targets] : [same, targets.filter(isSame)];
}

/** @returns says why a pod is unhealthy; `undefined`: it is not */
function judgeOf(
  { rollout: { unhealthy }, since, now, restartsOf }: HealthInput,
  others: Pods,
): (pod: RolledPod) => string | undefined {
  const { restarts: mostRestarts, readyWithin: readyWithinMs, timesSlower } = unhealthy;
  const usual = median(others.filter(({ ready, createdAt }) => ready && createdAt >= since).map(timeToReady));
  const slowMs = usual === undefined ? Infinity : Math.max(leastSlowMs, usual * timesSlower);
  return (pod) => {
    const name = printable(pod.name, 100);
    const restarts = restartsOf(pod);
    if (restarts >= mostRestarts) return `${name} restarted ${restarts} times`;
    // Until it has a node, its program takes no time.
    const limitMs = pod.running ? Math.min(readyWithinMs, slowMs) : readyWithinMs;
    if (!pod.ready && now - pod.readySince > limitMs)
      return `${name} has not been ready for ${formatDuration(now - pod.readySince)}`;
    const tookMs = timeToReady(pod);
    if (pod.ready && pod.createdAt >= since && tookMs > slowMs)
      return `${name} took ${formatDuration(tookMs)} to become ready, the others ${formatDuration(usual ?? 0)}`;
    return undefined;
  };
}

function timeToReady({ scheduledAt, readySince }: RolledPod): number {
  return readySince - scheduledAt;
}

function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
