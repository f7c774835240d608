/**
 * Restarts the pods that carry our tolerations, so that none of them is left: by the Eviction API, so that
 * PodDisruptionBudgets hold; no faster than `evictionsPerMinute`; of each workload one pod after the other, the next when the
 * workload has as many ready pods as it wants. Pods that nobody would make anew stay, and so do those whose template carries
 * the tolerations (DaemonSets) and those that end by themselves (Jobs).
 */
import { KubeError } from '../../kube/errors.ts';
import type { KubeObject, OwnerReference, Pod } from '../../kube/objects.ts';
import { recordedIn } from '../../placement/recorded.ts';
import type { Configuration } from '../../policy/configuration.ts';
import { policyFor } from '../../policy/effective.ts';
import type { Policy } from '../../policy/policy.ts';
import type { Act, Cleaning } from './cleaning.ts';
import { podPath } from './gates.ts';

const step = 'restarted pods';

/** Pause between two pods of a workload, and before the next try for one that could not be evicted. */
const againMs = 5000;
/** A workload for which nothing could be done for so long is left as it is. */
const patienceMs = 10 * 60_000;

/** Owners whose pods are not restarted, and why. */
const leftAlone: Readonly<Record<string, string>> = {
  DaemonSet: 'pods of DaemonSets: their templates were placed',
  Job: 'pods of Jobs, which end by themselves',
  Node: 'mirror pods',
};

/** Fields of ReplicaSet, StatefulSet and ReplicationController. */
interface Workload extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

/** A budget holds the pod, or the API server has no room: the same for us. */
class Blocked extends Error {}

interface Group {
  readonly what: string;
  /** API path; `undefined` where readiness cannot be asked. */
  readonly path: string | undefined;
  readonly pods: Pod[];
  isBegun: boolean;
  /** Monotonic. */
  notBefore: number;
  lastSuccess: number;
  trouble: string;
}

const collections: Readonly<Record<string, string>> = {
  'apps/v1/ReplicaSet': 'replicasets',
  'apps/v1/StatefulSet': 'statefulsets',
  'v1/ReplicationController': 'replicationcontrollers',
};

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
    group.notBefore = after + againMs;
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
  if (group.isBegun && !cleaning.dryRun && !(await isReady(cleaning, group))) return false;
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

async function isReady(cleaning: Cleaning, group: Group): Promise<boolean> {
  if (group.path === undefined) return true;
  try {
    const workload = await cleaning.read<Workload>(group.path);
    const ready = workload?.status?.readyReplicas ?? 0;
    const wanted = workload?.spec?.replicas ?? 0;
    group.trouble = `${ready} of ${wanted} pods are ready`;
    return ready >= wanted;
  } catch (error) {
    if (error instanceof KubeError && error.code === 'forbidden') return true;
    throw error;
  }
}

async function groupsOf(cleaning: Cleaning, configuration: Configuration): Promise<Group[]> {
  const policy = policyFor(configuration);
  const groups = new Map<string, Group>();
  for await (const pod of cleaning.list<Pod>('/api/v1/pods', { fieldSelector: 'spec.nodeName!=' })) {
    if (hasEnded(pod) || !carriesOurs(pod, policy, configuration.taintKey)) continue;
    const { namespace = '', name = '', ownerReferences = [] } = pod.metadata ?? {};
    const owner = ownerReferences.find(({ controller }) => controller === true);
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
    if (!group) groups.set(key, (group = newGroup(key, pathOf(namespace, owner))));
    group.pods.push(slim(pod));
  }
  return [...groups.values()];
}

function newGroup(what: string, path: string | undefined): Group {
  return { what, path, pods: [], isBegun: false, notBefore: 0, lastSuccess: 0, trouble: '' };
}

function pathOf(namespace: string, { apiVersion, kind, name }: OwnerReference): string | undefined {
  const collection = collections[`${apiVersion}/${kind}`];
  if (collection === undefined) return undefined;
  const api = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  return `${api}/namespaces/${encodeURIComponent(namespace)}/${collection}/${encodeURIComponent(name)}`;
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
