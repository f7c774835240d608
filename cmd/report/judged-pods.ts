/** The pods of a report, each with its verdict and everything that blocks it. */
import { setMaxListeners } from 'node:events';
import { concurrently } from '../../src/async/concurrently.ts';
import type { ClusterObjects } from '../../src/cluster/cluster.ts';
import { readConfigMaps } from '../../src/cluster/config-map.ts';
import { createReferenceCache, validReference } from '../../src/images/references/reference.ts';
import { parseDrifted } from '../../src/images/sources/drifted-tags.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { ignoring } from '../../src/kube/api/errors.ts';
import type { Node } from '../../src/kube/api/objects.ts';
import { objectsOf } from '../../src/kube/api/pages.ts';
import { paths } from '../../src/kube/api/paths.ts';
import { ownNames } from '../../src/names/keys.ts';
import { architectureOf } from '../../src/nodes/classify.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { sortObjects } from '../objects/input.ts';
import { openPodFacts, type lookupFlags } from '../lookups/pod-facts.ts';
import { createProgress } from '../program/terminal.ts';
import type { Invocation } from '../program/subcommand.ts';
import type { Cluster } from '../wiring/cluster.ts';
import { judgePod, judgeImages, type DriftOf } from './verdict.ts';
import { listPods, workloadsOf } from './pods.ts';
import { offerOfNode, type PriceList } from './prices/prices.ts';

/** Sets of images looked up at a time. The registry client limits the requests of each registry. */
const concurrentSets = 16;

interface ReportRequest {
  readonly architecture: string;
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly prices: PriceList;
}

/**
 * The images of pods that are made alike are looked up once.
 * @returns `isComplete`: false if images could not be looked up
 * @throws KubeError
 */
export async function judgedPods(
  invocation: Invocation<typeof lookupFlags>,
  cluster: Cluster,
  { architecture, namespaces, prices }: ReportRequest,
  opened: AsyncDisposableStack,
) {
  const { io, say, stop } = invocation;
  const { client } = cluster.kubernetes;
  const progress = createProgress(io);
  let isComplete = true;
  const onProblem = (message: string): void => {
    isComplete = false;
    say(message);
  };
  setMaxListeners(0, stop);
  progress.show('reading pods');
  const [pods, nodes] = await Promise.all([
    listPods(client, namespaces, stop, (count) => progress.show(`reading pods: ${count}`)),
    listNodes(client, stop, prices),
  ]);
  progress.show('reading workloads');
  const workloadOf = await workloadsOf(pods, namespaces, { client, signal: stop });
  progress.end();
  if (nodes === undefined)
    say('no permission to read nodes; the report does not show where pods run', 'warning');
  const input = sortObjects([], 'default');
  const source = await openPodFacts({ invocation, cluster, input, onProblem }, opened);
  const driftOf = await readDrift(cluster.context.configuration, source.podContext, stop);
  const sets = [...Map.groupBy(pods, ({ made }) => made)];
  let done = 0;
  const judged = await concurrently(sets, concurrentSets, async ([made, all]) => {
    const facts = await source.factsOfPod({ ...made.wanted, budgetMs: source.budgetMs });
    done += 1;
    progress.show(`images of ${done} of ${sets.length} kinds of pods`);
    const images = judgeImages(made, architecture, (image) => facts.get(image), driftOf);
    return all.map((pod) => {
      const workload = workloadOf(pod);
      const on = pod.node === undefined ? undefined : nodes?.get(pod.node)?.architecture;
      return { pod, workload, images, on, ...judgePod(pod, workload, images, architecture) };
    });
  });
  progress.end();
  const { lookups, pullSecrets } = source;
  return { pods: judged.flat(), nodes, lookups, isComplete, pullSecrets };
}

/** Nodes by name; `undefined` without the permission. @throws KubeError */
async function listNodes(client: KubeClient, signal: AbortSignal, prices: PriceList) {
  const nodes = Array.fromAsync(objectsOf<Node>(client, paths.nodes(), { signal }), (node) => {
    const reported = { architecture: architectureOf(node), offer: offerOfNode(node, prices) };
    return [node.metadata?.name ?? '', reported] as const;
  });
  const found = await ignoring('forbidden', nodes);
  return found && new Map(found);
}

/** The controller's notes; none without the permission. @param configuration no `namespace`: all */
export async function readDrift(
  { namespace, name }: Pick<Configuration, 'namespace' | 'name'>,
  cluster: Pick<ClusterObjects, 'read'>,
  signal: AbortSignal,
): Promise<DriftOf> {
  const found = await readConfigMaps({ namespace, name: ownNames({ name }).drift }, cluster, signal);
  const byImage = new Map((found ?? []).flatMap(parseDrifted).map((tag) => [tag.image, tag]));
  const parse = createReferenceCache();
  return (image) => {
    if (byImage.size === 0) return undefined;
    const reference = validReference(image, parse);
    return reference && byImage.get(reference.text);
  };
}
