/**
 * Restarts the pods that carry our tolerations: by the Eviction API, so PodDisruptionBudgets hold; no faster than
 * `evictionsPerMinute`; one pod of a workload at a time, the next when all pods of the workload are ready (`rollout-complete.ts`).
 * Pods without a controller stay, and so do pods of DaemonSets, which get the tolerations from their templates, and of Jobs, which end.
 */
import { evictPod } from '../../kube/api/eviction.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { recordedIn } from '../../placement/record/read.ts';
import { policyFor } from '../../policy/effective/effective.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { controllerOf } from '../scope/workload.ts';
import { isReady, podsOnce, readinessOf, type RestartedWorkload } from './rollout-complete.ts';
import { paths } from '../../kube/api/paths.ts';
import type { Change, CleanRun } from './run.ts';

const step = 'restarted pods';

/** Pause between two pods of a workload, and after a failed eviction; longer and longer if each look is costly. */
const pause = { firstMs: 5000, mostMs: 60_000 };
/** A workload without progress for so long is left as it is. */
const patienceMs = 10 * 60_000;

/** Owners with pods that are not restarted, and why. */
const skippedOwners: Readonly<Record<string, string>> = {
  DaemonSet: 'pods of DaemonSets: their templates were placed',
  Job: 'pods of Jobs, which end by themselves',
  Node: 'mirror pods',
};

/** A budget forbids the eviction, or the API server is busy. Both mean: later. */
class Blocked extends Error {}

interface Group {
  readonly what: string;
  readonly workload: RestartedWorkload;
  readonly pods: PodName[];
  isBegun: boolean;
  pauseMs: number;
  /** Monotonic. */
  notBefore: number;
  lastSuccess: number;
  trouble: string;
}

/** All that is needed of a pod among tens of thousands. */
interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** @throws KubeError if pods cannot be listed */
export async function restartPods(run: CleanRun): Promise<void> {
  const { clock, dryRun, configuration, progress } = run.options;
  const groups = await groupsOf(run);
  const intervalMs = 60_000 / configuration.evictionsPerMinute;
  progress(`${step}: ${groups.reduce((sum, { pods }) => sum + pods.length, 0)} to restart`);
  while (groups.length > 0) {
    const now = clock.monotonic();
    const index = groups.findIndex(({ notBefore }) => dryRun || notBefore <= now);
    const [group] = index < 0 ? [] : groups.splice(index, 1);
    if (!group) {
      await clock.sleep(Math.min(...groups.map(({ notBefore }) => notBefore)) - now, run.signal);
      continue;
    }
    const isDone = await restartOne(run, group);
    const after = clock.monotonic();
    if (isDone) group.lastSuccess = after;
    // A workload counts its pods some time after an eviction.
    group.notBefore = after + group.pauseMs;
    if (after - group.lastSuccess >= patienceMs) {
      run.tallies.fail(step, group.what, `${group.pods.length} pods left: ${group.trouble}`);
      continue;
    }
    // The other workloads come first.
    if (group.pods.length > 0) groups.push(group);
    if (isDone && groups.length > 0 && !dryRun) await clock.sleep(intervalMs, run.signal);
  }
}

/** @returns false: the next pod of the workload has to wait */
async function restartOne(run: CleanRun, group: Group): Promise<boolean> {
  const [pod] = group.pods;
  if (!pod) return true;
  if (group.isBegun && !run.options.dryRun && !(await isComplete(run, group))) return false;
  const { namespace, name, uid } = pod;
  const evict: Change = async (client, signal) => {
    try {
      await evictPod(client, pod, { uid }, signal);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 'too-many-requests') throw new Blocked(error.message);
      // Another pod has this name now.
      if (error.code !== 'conflict') throw error;
    }
  };
  try {
    await run.change(step, `pod ${namespace}/${name}`, evict);
  } catch (error) {
    if (!(error instanceof Blocked)) throw error;
    group.trouble = error.message;
    return false;
  }
  group.pods.shift();
  group.isBegun = true;
  return true;
}

async function isComplete(run: CleanRun, group: Group): Promise<boolean> {
  const { ready, wanted, isCostly } = await readinessOf(run, group.workload);
  group.trouble = `${ready} of ${wanted} pods are ready`;
  const isSo = ready >= wanted;
  group.pauseMs = isCostly && !isSo ? Math.min(group.pauseMs * 2, pause.mostMs) : pause.firstMs;
  return isSo;
}

async function groupsOf(run: CleanRun): Promise<Group[]> {
  const { configuration, clock } = run.options;
  const policy = policyFor(configuration);
  const groups = new Map<string, Pick<RestartedWorkload, 'namespace' | 'owner'> & { pods: PodName[] }>();
  const ready = new Map<string, number>();
  for await (const pod of podsOnce(run, paths.pods(), { fieldSelector: 'spec.nodeName!=' })) {
    const owner = controllerOf(pod);
    if (owner && isReady(pod)) ready.set(owner.uid, (ready.get(owner.uid) ?? 0) + 1);
    if (hasEnded(pod) || !carriesOurs(pod, policy, configuration.taintKey)) continue;
    const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
    const why = owner && skippedOwners[owner.kind];
    if (!owner)
      run.tallies.note(step, `pod ${namespace}/${name} stays: it has no controller that would replace it`);
    else if (why !== undefined) run.tallies.note(step, `skipped: ${why}`);
    else {
      const what = `${owner.kind} ${namespace}/${owner.name}`;
      const group = groups.get(what) ?? { namespace, owner, pods: [] };
      groups.set(what, group);
      group.pods.push({ namespace, name, uid });
    }
  }
  return [...groups].map(([what, { namespace, owner, pods }]) => ({
    what,
    workload: { namespace, owner, readyAtFirst: ready.get(owner.uid) ?? 0 },
    pods,
    isBegun: false,
    pauseMs: pause.firstMs,
    notBefore: 0,
    lastSuccess: clock.monotonic(),
    trouble: '',
  }));
}

function hasEnded({ metadata, status }: Pod & { readonly status?: { readonly phase?: string } }): boolean {
  return (
    metadata?.deletionTimestamp !== undefined || status?.phase === 'Succeeded' || status?.phase === 'Failed'
  );
}

function carriesOurs(pod: Pod, policy: Policy, taintKey: string): boolean {
  const tolerations = pod.spec.tolerations ?? [];
  if (tolerations.some(({ key }) => key === taintKey)) return true;
  const added = recordedIn({ pod, policy })?.added.tolerations ?? [];
  return added.some((ours) =>
    tolerations.some(
      ({ key, value, effect }) => key === ours.key && value === ours.value && effect === ours.effect,
    ),
  );
}
