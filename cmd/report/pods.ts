/** The pods of a cluster that have not ended, and their nodes, reduced to what a report needs. */
import { pullSecretNames } from '../../src/credentials/sources/pull-secrets.ts';
import { serviceAccountOf } from '../../src/credentials/credential.ts';
import { architectureOf } from '../../src/nodes/classify.ts';
import type { PodFactsRequest } from '../../src/cluster/facts-of-pod.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { ignoring } from '../../src/kube/api/errors.ts';
import type { Container, Node, OwnerReference, Pod, PodSpec } from '../../src/kube/api/objects.ts';
import { objectsOf } from '../../src/kube/api/pages.ts';
import { imagesOf } from '../../src/placement/pod/images.ts';
import { operatingSystemOf } from '../../src/placement/pod/terms.ts';
import { keys } from '../../src/names/keys.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { offerOfNode, type Offer, type PriceList } from './prices/prices.ts';
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

/** All but mirror pods, which belong to their nodes. @param namespaces empty: all @throws KubeError */
export async function listPods(
  client: KubeClient,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<readonly ReportedPod[]> {
  const collections = namespaces.length === 0 ? [paths.pods()] : namespaces.map((name) => paths.pods(name));
  const found: ReportedPod[] = [];
  const alike = new Map<string, MadePod>();
  for (const path of collections) {
    for await (const pod of objectsOf<Pod>(client, path, { signal, query: { fieldSelector: notEnded } }))
      if (pod.metadata?.annotations?.[mirrorAnnotation] === undefined) found.push(reduced(pod, alike));
  }
  return found;
}

export interface ReportedNode {
  readonly architecture: string | undefined;
  readonly offer: Offer | undefined;
}

/** Nodes by name; `undefined` without the permission. @throws KubeError */
export async function listNodes(
  client: KubeClient,
  signal: AbortSignal,
  prices: PriceList,
): Promise<ReadonlyMap<string, ReportedNode> | undefined> {
  const nodes = Array.fromAsync(objectsOf<Node>(client, paths.nodes(), { signal }), (node) => {
    const reported = { architecture: architectureOf(node), offer: offerOfNode(node, prices) };
    return [node.metadata?.name ?? '', reported] as const;
  });
  const found = await ignoring('forbidden', nodes);
  return found && new Map(found);
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
  /** Of a pod. */
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
