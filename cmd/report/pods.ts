/** The pods of a cluster that have not ended, and their workloads, reduced to what a report needs. */
import { concurrently } from '../../src/async/concurrently.ts';
import {
  controllerOf,
  daemonTemplateOf,
  isOfPlacedTemplate,
  ownersPath,
  workloadOf,
} from '../../src/controller/pods/workload.ts';
import { pullSecretNames } from '../../src/credentials/sources/pull-secrets.ts';
import { serviceAccountOf } from '../../src/credentials/credential.ts';
import type { PodFactsRequest } from '../../src/cluster/facts-of-pod.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { isCode } from '../../src/kube/api/errors.ts';
import type {
  Container,
  KubeObject,
  OwnerReference,
  Pod,
  PodSpec,
  PodTemplate,
} from '../../src/kube/api/objects.ts';
import { objectsOf, PageSize } from '../../src/kube/api/pages.ts';
import { imagesOf } from '../../src/placement/pod/images.ts';
import { operatingSystemOf } from '../../src/placement/pod/terms.ts';
import { keys } from '../../src/names/keys.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { parseQuantity } from '../../src/names/quantity.ts';

export interface ReportedPod {
  readonly namespace: string;
  readonly owner: OwnerReference | undefined;
  readonly name: string;
  readonly node: string | undefined;
  /** The same object for pods that are made alike. */
  readonly made: MadePod;
}

/** What a report looks at in a pod. Most pods of a cluster are made from a few templates. */
export interface MadePod {
  readonly os: string;
  readonly pod: Pick<Pod, 'metadata' | 'spec'>;
  readonly requests: Requests;
  /** Requests of the containers, by image. An image volume requests nothing. */
  readonly requestsByImage: ReadonlyMap<string, Requests>;
  readonly wanted: Omit<PodFactsRequest, 'budgetMs'>;
}

const notEnded = 'status.phase!=Succeeded,status.phase!=Failed';
const mirrorAnnotation = 'kubernetes.io/config.mirror';

/** A page of the API server, which takes up to some seconds. */
const podsPerNote = 500;

/**
 * All but mirror pods, which belong to their nodes.
 * @param namespaces empty: all
 * @param onRead gets the number of pods, now and then
 * @throws KubeError
 */
export async function listPods(
  client: KubeClient,
  namespaces: readonly string[],
  signal: AbortSignal,
  onRead: (count: number) => void,
): Promise<readonly ReportedPod[]> {
  const collections = namespaces.length === 0 ? [paths.pods()] : namespaces.map((name) => paths.pods(name));
  const found: ReportedPod[] = [];
  const alike = new Map<string, MadePod>();
  for (const path of collections) {
    for await (const pod of objectsOf<Pod>(client, path, { signal, query: { fieldSelector: notEnded } }))
      if (pod.metadata?.annotations?.[mirrorAnnotation] === undefined) {
        found.push(reduced(pod, alike));
        if (found.length % podsPerNote === 0) onRead(found.length);
      }
  }
  return found;
}

/** A large cluster has tens of thousands of pods, of a few hundred kinds. */
function reduced(pod: Pod, alike: Map<string, MadePod>): ReportedPod {
  const { metadata = {}, spec } = pod;
  const own = madeOf(pod);
  const key = JSON.stringify([own, [...own.requestsByImage]]);
  const made = alike.get(key) ?? own;
  alike.set(key, made);
  return {
    namespace: metadata.namespace ?? '',
    owner: metadata.ownerReferences?.find(({ controller }) => controller === true),
    name: metadata.name ?? '',
    node: spec.nodeName,
    made,
  };
}

function madeOf(pod: Pod): MadePod {
  const { metadata, spec } = pod;
  const namespace = metadata?.namespace ?? '';
  return {
    os: operatingSystemOf(spec),
    pod: scheduling(pod),
    requests: requestsOfPod(spec),
    requestsByImage: requestsByImage(spec),
    wanted: {
      // Each image is looked up once: `Always` changes no architecture.
      uses: imagesOf(spec).map((use) =>
        use.pullPolicy === 'Always' ? { ...use, pullPolicy: 'IfNotPresent' } : use,
      ),
      namespace,
      pullSecrets: { names: pullSecretNames(spec) },
      serviceAccount: serviceAccountOf(namespace, spec.serviceAccountName),
    },
  };
}

/** A large cluster has tens of thousands of pods, so the rest is dropped. */
function scheduling({ metadata, spec }: Pod): MadePod['pod'] {
  const decision = metadata?.annotations?.[keys.decision];
  const { nodeSelector, affinity, tolerations } = spec;
  return {
    metadata: { ...(decision !== undefined && { annotations: { [keys.decision]: decision } }) },
    spec: {
      containers: [],
      ...(nodeSelector && { nodeSelector }),
      ...(affinity?.nodeAffinity && { affinity: { nodeAffinity: affinity.nodeAffinity } }),
      ...(tolerations && { tolerations }),
    },
  };
}

function requestsByImage({ initContainers = [], containers }: Pod['spec']): Map<string, Requests> {
  const found = new Map<string, Requests>();
  for (const container of [...initContainers, ...containers]) {
    const { image = '', restartPolicy } = container;
    const runs = containers.includes(container) || restartPolicy === 'Always';
    const own = runs ? requestsOfContainer(container) : noRequests;
    found.set(image, sum(found.get(image) ?? noRequests, own));
  }
  return found;
}

/** CPU in cores, memory in bytes. */
export interface Requests {
  readonly cpu: number;
  readonly memory: number;
}

type Quantities = Readonly<Record<string, unknown>>;

interface Requesting {
  readonly resources?: { readonly requests?: Quantities };
  /** The pod's overhead. */
  readonly overhead?: Quantities;
}

export const noRequests: Requests = { cpu: 0, memory: 0 };

export function sum(a: Requests, b: Requests): Requests {
  return { cpu: a.cpu + b.cpu, memory: a.memory + b.memory };
}

function requestsOfContainer(container: Container): Requests {
  return read((container as Requesting).resources?.requests);
}

export function requestsOfPod(spec: PodSpec): Requests {
  const { initContainers = [], containers, overhead, resources } = spec as PodSpec & Requesting;
  let sidecars = noRequests;
  let starting = noRequests;
  for (const container of initContainers) {
    const own = requestsOfContainer(container);
    const moment = sum(sidecars, own);
    if (container.restartPolicy === 'Always') sidecars = moment;
    starting = largest(starting, moment);
  }
  const running = (containers ?? []).map(requestsOfContainer).reduce(sum, sidecars);
  const needed = largest(starting, running);
  return sum(read(resources?.requests, needed), read(overhead));
}

function read(requests: Quantities | undefined, otherwise = noRequests): Requests {
  return {
    cpu: parseQuantity(requests?.['cpu']) ?? otherwise.cpu,
    memory: parseQuantity(requests?.['memory']) ?? otherwise.memory,
  };
}

function largest(a: Requests, b: Requests): Requests {
  return { cpu: Math.max(a.cpu, b.cpu), memory: Math.max(a.memory, b.memory) };
}

/** What a person applied. */
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
