/** What decides pods: policies, with custom resources in files before the cluster's, and classes of nodes. */
import { ownNames } from '../../src/names/keys.ts';
import { isCleanHolder } from '../../src/controller/lead/candidacy.ts';
import type { KubeObject, Node } from '../../src/kube/api/objects.ts';
import type { GetOptions } from '../../src/kube/api/client.ts';
import { objectsOf, PageSize, type Page } from '../../src/kube/api/pages.ts';
import { recordOf } from '../../src/kube/election/lease-lock.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { createPolicies, type Policies } from '../../src/policy/effective/policies.ts';
import { collectResources } from '../../src/policy/resources/collection.ts';
import { clusterConfigsPath, podConfigsPath } from '../../src/policy/resources/placement.ts';
import { rolloutsPath } from '../../src/policy/resources/rollout.ts';
import type { Input } from '../objects/input.ts';
import type { PodContext } from '../lookups/pod-facts.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { createNodeClasses } from '../../src/cluster/nodes.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { classify } from '../../src/nodes/classify.ts';
import type { NodeClasses } from '../../src/nodes/node-classes.ts';

interface PoliciesOptions {
  readonly configuration: Configuration;
  readonly input: Pick<Input, 'subjects' | 'clusterConfigs' | 'podConfigs'>;
  readonly podContext: Pick<PodContext, 'read'>;
  readonly agentsAnswer: () => boolean;
  readonly stop: AbortSignal;
}

type List = Page<KubeObject>;

/** Allowed difference between the local clock and the controller's. */
const clockDifferenceMs = 60_000;

export async function readPolicies(options: PoliciesOptions): Promise<Policies> {
  const { configuration, input, podContext, stop } = options;
  const namespaces = [...new Set(input.subjects.map(({ namespace }) => namespace))];
  const ofNamespaces = (path: (namespace: string) => string): Promise<readonly KubeObject[]> =>
    Promise.all(namespaces.map((name) => podContext.read<List>(path(name), stop))).then((lists) =>
      lists.flatMap((list) => list?.items ?? []),
    );
  const [cluster, leads, pods, rollouts] = await Promise.all([
    podContext.read<List>(clusterConfigsPath(), stop),
    controllerLeads(options),
    ofNamespaces(podConfigsPath),
    ofNamespaces(rolloutsPath),
  ]);
  return createPolicies({
    configuration: () => configuration,
    controllerLeads: () => leads,
    agentsAnswer: options.agentsAnswer,
    resources: collectResources({
      clusterConfigs: sourceOf([...(cluster?.items ?? []), ...input.clusterConfigs]),
      podConfigs: sourceOf([...pods, ...input.podConfigs]),
      rollouts: sourceOf(rollouts),
    }),
  });
}

/** @returns `undefined`: the Lease cannot be read */
async function controllerLeads(options: PoliciesOptions): Promise<boolean | undefined> {
  const { configuration, podContext, stop } = options;
  const path = paths.leases(configuration.namespace);
  const query = { fieldSelector: `metadata.name=${ownNames(configuration).lease}` };
  const leases = await podContext.read<List>(path, stop, query);
  if (leases === undefined) return undefined;
  return (leases.items ?? []).map(recordOf).some(({ holder, durationMs, renewTime = '' }) => {
    const age = Date.now() - Date.parse(renewTime);
    return holder !== '' && !isCleanHolder(holder) && age < durationMs + clockDifferenceMs;
  });
}

/** Later objects replace earlier ones of the same name. */
function sourceOf<T>(objects: readonly T[]) {
  return { values: () => objects, onEach: () => undefined };
}

/** A node has up to 50 KB. */
const nodesPerPage = 100;

/** @returns `undefined` without a cluster or without the permission */
export async function readNodeClasses(
  podContext: Pick<PodContext, 'read'>,
  fleet: Pick<Fleet, 'nodeReports'> | undefined,
  stop: AbortSignal,
): Promise<NodeClasses | undefined> {
  const get = async <T>(path: string, { query }: GetOptions): Promise<T> =>
    (await podContext.read<T>(path, stop, query)) ?? ({} as T);
  const found = objectsOf<Node>({ get }, paths.nodes(), { signal: stop, size: new PageSize(nodesPerPage) });
  const nodes = await Array.fromAsync(found, (node) => ({ classified: classify(node) }));
  const reports = fleet && (() => fleet.nodeReports());
  return createNodeClasses(sourceOf(nodes), reports)();
}
