/** The workloads of pods, which are what a person applied. */
import { concurrently } from '../../src/async/concurrently.ts';
import {
  controllerOf,
  daemonTemplateOf,
  isOfPlacedTemplate,
  ownersPath,
  workloadOf,
} from '../../src/controller/pods/workload.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { isCode } from '../../src/kube/api/errors.ts';
import type { KubeObject, OwnerReference, PodTemplate } from '../../src/kube/api/objects.ts';
import { objectsOf, PageSize } from '../../src/kube/api/pages.ts';
import type { ReportedPod } from './pods.ts';

export interface ReportedWorkload {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Only of a readable DaemonSet, because its controller overwrites the node affinity of its pods. */
  readonly template?: PodTemplate;
}

interface Owner {
  readonly namespace: string;
  readonly owner: OwnerReference;
}

interface Reader {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
}

/** A large cluster has thousands of owners. */
const concurrentOwners = 16;
/** More owners of a kind are listed: one request instead of thousands. */
const maxReads = 100;
/** Metadata of an owner has 1 to 2 KB. */
const ownersPerPage = 2000;

/** Reads each owner once; one that cannot be read stands for itself. @param namespaces empty: all */
export async function workloadsOf(
  pods: readonly ReportedPod[],
  namespaces: readonly string[],
  options: Reader,
): Promise<(pod: ReportedPod) => ReportedWorkload> {
  const owners = new Map<string, Owner>();
  for (const { namespace, owner } of pods) if (owner) owners.set(owner.uid, { namespace, owner });
  const found = await listedWorkloads([...owners.values()], namespaces, options);
  const others = [...owners.values()].filter(({ owner }) => !found.has(owner.uid));
  await concurrently(others, concurrentOwners, async (each) => {
    found.set(each.owner.uid, await readWorkload(each, options));
  });
  return ({ owner, name }) => (owner && found.get(owner.uid)) ?? { apiVersion: 'v1', kind: 'Pod', name };
}

/** @returns by the uid of the owner; nothing of kinds with few owners, or that may not be listed */
async function listedWorkloads(
  owners: readonly Owner[],
  namespaces: readonly string[],
  { client, signal }: Reader,
): Promise<Map<string, ReportedWorkload>> {
  const found = new Map<string, ReportedWorkload>();
  const groups = Map.groupBy(owners, ({ namespace, owner }) =>
    ownersPath(owner, namespaces.length === 0 ? undefined : namespace),
  );
  for (const [path, group] of groups) {
    if (path === undefined || group.length <= maxReads) continue;
    const wanted = new Map(group.map(({ owner }) => [owner.uid, owner]));
    const options = { signal, metadataOnly: true, size: new PageSize(ownersPerPage) };
    try {
      for await (const object of objectsOf<KubeObject>(client, path, options)) {
        const owner = wanted.get(object.metadata?.uid ?? '');
        if (owner) found.set(owner.uid, nameOf(controllerOf(object) ?? owner));
      }
    } catch (error) {
      if (!isCode(error, 'forbidden') && !isCode(error, 'gone')) throw error;
    }
  }
  return found;
}

async function readWorkload(
  { namespace, owner }: Owner,
  { client, signal }: Reader,
): Promise<ReportedWorkload> {
  if (isOfPlacedTemplate({ owner })) {
    const template = await daemonTemplateOf({ namespace, owner }, { client, signal });
    return { ...nameOf(owner), ...(typeof template === 'object' && { template }) };
  }
  const workload = await workloadOf(namespace, owner, { client, signal });
  return nameOf(workload?.top ?? owner);
}

function nameOf({ apiVersion, kind, name }: Omit<ReportedWorkload, 'template'>): ReportedWorkload {
  return { apiVersion, kind, name };
}
