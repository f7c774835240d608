/**
 * Restarts the workloads whose pods carry our tolerations, as `kubectl rollout restart` does: an annotation of
 * the pod template, so that the workload's own rolling update replaces the pods. Other pods stay as they are.
 */
import type { KubeObject, OwnerReference, Pod, PodWithStatus } from '../kube/api/objects.ts';
import { namespacedPath, paths, type NamespacedPath } from '../kube/api/paths.ts';
import { recordedIn } from '../placement/record/read.ts';
import { controllerOf, ownersPath } from '../controller/pods/workload.ts';
import { hasEnded } from '../controller/state/cached.ts';
import type { Change, CleanRun } from './run.ts';

const step = 'restarted workloads';

/** The annotation of `kubectl rollout restart`. */
const restartedAt = 'kubectl.kubernetes.io/restartedAt';

/** Kinds that replace their pods when their template changes. Templates of DaemonSets were placed themselves. */
const restartable: Readonly<Record<string, NamespacedPath>> = {
  'apps/v1 Deployment': namespacedPath('apps/v1', 'deployments'),
  'apps/v1 StatefulSet': namespacedPath('apps/v1', 'statefulsets'),
};

/** @throws KubeError if pods or ReplicaSets cannot be read */
export async function restartPods(run: CleanRun): Promise<void> {
  const { clock, client, dryRun, configuration, progress } = run.options;
  const workloads = await workloadsOf(run);
  progress(`${step}: ${workloads.size} to restart`);
  const annotations = { [restartedAt]: new Date(client.serverNow()).toISOString() };
  const body = { spec: { template: { metadata: { annotations } } } };
  for (const [what, path] of workloads) {
    const restart: Change = (writer, signal) => writer.patch(path, { type: 'merge', body }, { signal });
    await run.change(step, what, restart, 'restart');
    if (!dryRun) await clock.sleep(60_000 / configuration.evictionsPerMinute, run.signal);
  }
}

/** @returns paths of the workloads to restart, by their names for the report */
async function workloadsOf(run: CleanRun): Promise<ReadonlyMap<string, string>> {
  const { configuration } = run.options;
  const owners = new Map<string, { readonly namespace: string; readonly owner: OwnerReference }>();
  for await (const pod of run.list<PodWithStatus>(paths.pods(), { fieldSelector: 'spec.nodeName!=' })) {
    const { namespace = '', name = '', deletionTimestamp } = pod.metadata ?? {};
    if (deletionTimestamp !== undefined || hasEnded({ phase: pod.status?.phase ?? '' })) continue;
    if (!carriesOurs(pod, configuration.taintKey)) continue;
    const owner = controllerOf(pod);
    if (owner) owners.set(`${owner.kind} ${namespace}/${owner.name}`, { namespace, owner });
    else run.note(step, `pod ${namespace}/${name} stays: it has no controller that would replace it`);
  }
  const workloads = new Map<string, string>();
  for (const { namespace, owner } of owners.values()) {
    const { apiVersion, kind, name } = await topOf(run, namespace, owner);
    const path = restartable[`${apiVersion} ${kind}`]?.(namespace, name);
    const what = `${kind} ${namespace}/${name}`;
    if (path === undefined) run.note(step, `pods of ${what} stay`);
    else workloads.set(what, path);
  }
  return workloads;
}

/** The Deployment of a ReplicaSet; any other owner itself. */
async function topOf(run: CleanRun, namespace: string, owner: OwnerReference): Promise<OwnerReference> {
  const path = owner.kind === 'ReplicaSet' ? ownersPath(owner, namespace, owner.name) : undefined;
  const found = path === undefined ? undefined : await run.read<KubeObject>(path);
  return (found && controllerOf(found)) ?? owner;
}

function carriesOurs(pod: Pod, taintKey: string): boolean {
  const tolerations = pod.spec.tolerations ?? [];
  if (tolerations.some(({ key }) => key === taintKey)) return true;
  const added = recordedIn({ pod })?.added.tolerations ?? [];
  return added.some((ours) =>
    tolerations.some(
      ({ key, value, effect }) => key === ours.key && value === ours.value && effect === ours.effect,
    ),
  );
}
