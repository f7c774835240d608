/**
 * Restarts the pods that carry our tolerations: by the Eviction API, so PodDisruptionBudgets hold; no faster
 * than `evictionsPerMinute`; one pod of a workload at a time, the next when all its pods are ready. Skips
 * pods without a controller, of DaemonSets (their templates carry the tolerations), and of Jobs (they end).
 */
import { evictPod } from '../../kube/api/change.ts';
import type { Query } from '../../kube/api/transport.ts';
import { ignoring, isCode } from '../../kube/api/errors.ts';
import type { KubeObject, OwnerReference, Pod, PodWithStatus } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import { recordedIn } from '../../placement/record/read.ts';
import { policyFor } from '../../policy/effective/effective.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { isReady } from '../caches/cached.ts';
import { controllerOf, ownerPath } from '../scope/workload.ts';
import type { Change, CleanRun } from './run.ts';

const step = 'restarted pods';

/** Between two pods of a workload, and after a failed eviction; doubles if each look is costly. */
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
  readonly namespace: string;
  readonly owner: OwnerReference;
  /** Pods to restart: all that is needed of a pod among tens of thousands. */
  readonly pods: { readonly namespace: string; readonly name: string; readonly uid: string }[];
  /** How many of its pods, with and without our tolerations, were ready when the run began. */
  readyAtFirst: number;
  isBegun: boolean;
  pauseMs: number;
  /** Monotonic. */
  notBefore: number;
  lastSuccess: number;
  trouble: string;
}

/** Fields of ReplicaSet, StatefulSet and ReplicationController. */
interface Owner extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
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
  try {
    const evict: Change = async (client, signal) => {
      try {
        await evictPod(client, pod, { uid: pod.uid }, signal);
      } catch (error) {
        if (isCode(error, 'too-many-requests')) throw new Blocked(error.message);
        // Another pod has this name now.
        if (!isCode(error, 'conflict')) throw error;
      }
    };
    await run.change(step, `pod ${pod.namespace}/${pod.name}`, evict, 'evict');
  } catch (error) {
    if (!(error instanceof Blocked)) throw error;
    group.trouble = error.message;
    return false;
  }
  group.pods.shift();
  group.isBegun = true;
  return true;
}

/**
 * Whether all pods of a workload are ready again, by its desired and ready numbers. If its kind is unknown or
 * unreadable, as many pods must be ready as when the run began.
 */
async function isComplete(run: CleanRun, group: Group): Promise<boolean> {
  const counted = await countsOf(run, group);
  const ready = counted?.ready ?? (await readyPodsOf(run, group));
  const wanted = counted?.wanted ?? group.readyAtFirst;
  group.trouble = `${ready} of ${wanted} pods are ready`;
  const isSo = ready >= wanted;
  // Without counts, all pods of the namespace had to be read.
  const isCostly = counted === undefined;
  group.pauseMs = isCostly && !isSo ? Math.min(group.pauseMs * 2, pause.mostMs) : pause.firstMs;
  return isSo;
}

async function countsOf(run: CleanRun, { namespace, owner }: Group) {
  const path = ownerPath(namespace, owner);
  if (path === undefined) return undefined;
  const counts = ({ spec, status }: Owner = {}) => {
    return { ready: status?.readyReplicas ?? 0, wanted: spec?.replicas ?? 0 };
  };
  return await ignoring('forbidden', run.read<Owner>(path).then(counts));
}

async function readyPodsOf(run: CleanRun, { namespace, owner }: Group): Promise<number> {
  let ready = 0;
  for await (const pod of podsOnce(run, paths.pods(namespace)))
    if (controllerOf(pod)?.uid === owner.uid && isReadyPod(pod)) ready += 1;
  return ready;
}

async function groupsOf(run: CleanRun): Promise<Group[]> {
  const { configuration, clock } = run.options;
  const policy = policyFor(configuration);
  const groups = new Map<string, Group>();
  const ready = new Map<string, number>();
  for await (const pod of podsOnce(run, paths.pods(), { fieldSelector: 'spec.nodeName!=' })) {
    const owner = controllerOf(pod);
    if (owner && isReadyPod(pod)) ready.set(owner.uid, (ready.get(owner.uid) ?? 0) + 1);
    if (hasEnded(pod) || !carriesOurs(pod, policy, configuration.taintKey)) continue;
    const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
    const why = owner && skippedOwners[owner.kind];
    if (!owner)
      run.tallies.note(step, `pod ${namespace}/${name} stays: it has no controller that would replace it`);
    else if (why !== undefined) run.tallies.note(step, `skipped: ${why}`);
    else {
      const what = `${owner.kind} ${namespace}/${owner.name}`;
      const group = groups.get(what) ?? newGroup(what, namespace, owner);
      groups.set(what, group);
      group.pods.push({ namespace, name, uid });
    }
  }
  for (const group of groups.values()) {
    group.readyAtFirst = ready.get(group.owner.uid) ?? 0;
    group.lastSuccess = clock.monotonic();
  }
  return [...groups.values()];
}

function newGroup(what: string, namespace: string, owner: OwnerReference): Group {
  const times = { pauseMs: pause.firstMs, notBefore: 0, lastSuccess: 0 };
  return { what, namespace, owner, pods: [], readyAtFirst: 0, isBegun: false, ...times, trouble: '' };
}

/** Every pod of a collection, each once: a list that expires is read again from its beginning. */
async function* podsOnce(run: CleanRun, path: string, query?: Query): AsyncIterable<PodWithStatus> {
  const seen = new Set<string>();
  for await (const pod of run.list<PodWithStatus>(path, query)) {
    const { uid = '' } = pod.metadata ?? {};
    if (!seen.has(uid)) yield pod;
    seen.add(uid);
  }
}

function isReadyPod({ metadata, status }: PodWithStatus): boolean {
  return metadata?.deletionTimestamp === undefined && isReady(status);
}

function hasEnded({ metadata, status }: PodWithStatus): boolean {
  return metadata?.deletionTimestamp !== undefined || ['Succeeded', 'Failed'].includes(status?.phase ?? '');
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
