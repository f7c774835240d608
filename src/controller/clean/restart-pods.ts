/**
 * Restarts the pods that carry our tolerations, so that none of them is left: by the Eviction API, so that
 * PodDisruptionBudgets hold; no faster than `evictionsPerMinute`; of each workload one pod after the other, the next when the
 * workload is whole again (`whole.ts`). Pods that nobody would make anew stay, and so do those whose template carries
 * the tolerations (DaemonSets) and those that end by themselves (Jobs).
 */
import { KubeError } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { recordedIn } from '../../placement/record/read.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import { policyFor } from '../../policy/effective/effective.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import type { Act, Cleaning } from './steps.ts';
import { podPath } from './gates.ts';
import { controllerOf, isReady, podsOnce, readinessOf, type Restarted } from './rollout-complete.ts';
import { paths } from '../../kube/api/paths.ts';

const step = 'restarted pods';

/** Pause between two pods of a workload, and before the next try for one that could not be evicted. */
const againMs = 5000;
/** The same where looking is costly: longer and longer. */
const mostAgainMs = 60_000;
/** A workload for which nothing could be done for so long is left as it is. */
const patienceMs = 10 * 60_000;

/** Owners whose pods are not restarted, and why. */
const leftAlone: Readonly<Record<string, string>> = {
  DaemonSet: 'pods of DaemonSets: their templates were placed',
  Job: 'pods of Jobs, which end by themselves',
  Node: 'mirror pods',
};

/** A budget holds the pod, or the API server has no room: the same for us. */
class Blocked extends Error {}

interface Group {
  readonly what: string;
  readonly workload: Restarted;
  readonly pods: Pod[];
  isBegun: boolean;
  pauseMs: number;
  /** Monotonic. */
  notBefore: number;
  lastSuccess: number;
  trouble: string;
}

/** @throws KubeError where pods cannot be listed */
export async function restartPods(cleaning: Cleaning, configuration: Configuration): Promise<void> {
  const { clock, sleep, signal, dryRun } = cleaning;
  const groups = await groupsOf(cleaning, configuration);
  const intervalMs = 60_000 / configuration.evictionsPerMinute;
  const began = clock.monotonic();
  for (const group of groups) group.lastSuccess = began;
  cleaning.progress(`${step}: ${groups.reduce((sum, { pods }) => sum + pods.length, 0)} to restart`);
  while (groups.length > 0) {
    const now = clock.monotonic();
    const index = groups.findIndex(({ notBefore }) => dryRun || notBefore <= now);
    const [group] = index < 0 ? [] : groups.splice(index, 1);
    if (!group) {
      await sleep(Math.min(...groups.map(({ notBefore }) => notBefore)) - now, signal);
      continue;
    }
    const isDone = await restartOne(cleaning, group);
    const after = clock.monotonic();
    if (isDone) group.lastSuccess = after;
    // A workload notices some time after an eviction that it has a pod less.
    group.notBefore = after + group.pauseMs;
    if (after - group.lastSuccess >= patienceMs) {
      cleaning.fail(step, group.what, `${group.pods.length} pods left: ${group.trouble}`);
      continue;
    }
    // To the end: the others come first.
    if (group.pods.length > 0) groups.push(group);
    if (isDone && groups.length > 0 && !dryRun) await sleep(intervalMs, signal);
  }
}

/** @returns false where the next pod of the workload has to wait */
async function restartOne(cleaning: Cleaning, group: Group): Promise<boolean> {
  const [pod] = group.pods;
  if (!pod) return true;
  if (group.isBegun && !cleaning.dryRun && !(await isWhole(cleaning, group))) return false;
  const { namespace = '', name = '', uid } = pod.metadata ?? {};
  const evict: Act = async (client, signal) => {
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { namespace, name },
      deleteOptions: { preconditions: { uid } },
    };
    try {
      await client.create(`${podPath(pod)}/eviction`, eviction, { signal });
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 'too-many-requests') throw new Blocked(error.message);
      // Another pod has its name by now.
      if (error.code !== 'conflict') throw error;
    }
  };
  try {
    await cleaning.change(step, `pod ${namespace}/${name}`, evict);
  } catch (error) {
    if (!(error instanceof Blocked)) throw error;
    group.trouble = error.message;
    return false;
  }
  group.pods.shift();
  group.isBegun = true;
  return true;
}

async function isWhole(cleaning: Cleaning, group: Group): Promise<boolean> {
  const { ready, wanted, isCostly } = await readinessOf(cleaning, group.workload);
  group.trouble = `${ready} of ${wanted} pods are ready`;
  const isSo = ready >= wanted;
  group.pauseMs = isCostly && !isSo ? Math.min(group.pauseMs * 2, mostAgainMs) : againMs;
  return isSo;
}

async function groupsOf(cleaning: Cleaning, configuration: Configuration): Promise<Group[]> {
  const policy = policyFor(configuration);
  const groups = new Map<string, Omit<Group, 'workload'> & Pick<Restarted, 'namespace' | 'owner'>>();
  const readyBy = new Map<string, number>();
  for await (const pod of podsOnce(cleaning, paths.pods(), { fieldSelector: 'spec.nodeName!=' })) {
    const owner = controllerOf(pod);
    if (owner && isReady(pod)) readyBy.set(owner.uid, (readyBy.get(owner.uid) ?? 0) + 1);
    if (hasEnded(pod) || !carriesOurs(pod, policy, configuration.taintKey)) continue;
    const { namespace = '', name = '' } = pod.metadata ?? {};
    if (!owner) {
      cleaning.note(step, `pod ${namespace}/${name} stays: nothing would make it anew`);
      continue;
    }
    const why = leftAlone[owner.kind];
    if (why !== undefined) {
      cleaning.note(step, `left alone: ${why}`);
      continue;
    }
    const key = `${owner.kind} ${namespace}/${owner.name}`;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { ...newGroup(key), namespace, owner }));
    group.pods.push(slim(pod));
  }
  return [...groups.values()].map(({ namespace, owner, ...group }) => ({
    ...group,
    workload: { namespace, owner, readyAtFirst: readyBy.get(owner.uid) ?? 0 },
  }));
}

function newGroup(what: string): Omit<Group, 'workload'> {
  return { what, pods: [], isBegun: false, pauseMs: againMs, notBefore: 0, lastSuccess: 0, trouble: '' };
}

/** All that is needed of a pod among ten thousands. */
function slim({ metadata }: Pod): Pod {
  const { namespace = '', name = '', uid = '' } = metadata ?? {};
  return { metadata: { namespace, name, uid }, spec: { containers: [] } };
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
