/** The pods of a report, each with its verdict and everything that blocks it. */
import { setMaxListeners } from 'node:events';
import { concurrently } from '../../src/async/concurrently.ts';
import { clusterObjects } from '../../src/cluster/cluster.ts';
import type { PullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Node } from '../../src/kube/api/objects.ts';
import type { ClusterContext } from '../explain/cluster-context.ts';
import { createPodContext } from '../explain/context.ts';
import { sortObjects } from '../explain/input.ts';
import { openPodFacts } from '../explain/pod-facts.ts';
import { createProgress } from '../program/progress.ts';
import type { Invocation } from '../program/subcommand.ts';
import type { Kubernetes } from '../wiring/kubernetes.ts';
import { blockersOf } from './blockers.ts';
import { readDrift } from './drift.ts';
import { listNodes, listPods } from './pods.ts';
import type { JudgedPod } from './rows.ts';
import { judge, judgeImages, withGain } from './verdict.ts';
import { workloadsOf } from './workloads.ts';

/** Sets of images looked up at a time. The registry client limits the requests of each registry. */
const concurrentSets = 16;
/** As many as in a page of a list. */
const shownPods = 500;
/** Limit for a GET by name; a busy cluster needs less. */
const clusterLimitMs = 10_000;

export interface JudgedPods {
  readonly pods: readonly JudgedPod[];
  /** Who looked up the images. */
  readonly asked: string;
  /** False if images could not be looked up. */
  readonly isComplete: boolean;
  readonly pullSecrets: PullSecrets;
}

/**
 * Reads the pods, and looks up their images.
 * @param opened closes what this opens
 * @throws KubeError
 */
export async function judgedPods(
  invocation: Invocation,
  around: ClusterContext,
  {
    kubernetes,
    architecture,
    onNode,
  }: {
    readonly kubernetes: Kubernetes;
    readonly architecture: string;
    readonly onNode: ((node: Node) => void) | undefined;
  },
  opened: AsyncDisposableStack,
): Promise<JudgedPods> {
  const { flags, io, stop } = invocation;
  const progress = createProgress(io);
  const problems = new Set<string>();
  const onProblem = (message: string): void => {
    progress.end();
    if (!problems.has(message)) io.err(`archwright report: ${message}\n`);
    problems.add(message);
  };
  const { client } = kubernetes;
  setMaxListeners(0, stop);
  const namespaces = [...new Set(flags.get('namespace'))];
  progress.show('reading pods');
  const [pods, nodes] = await Promise.all([
    listPods(client, namespaces, stop, (count) => {
      if (count % shownPods === 0) progress.show(`reading pods: ${count}`);
    }),
    listNodes(client, stop, onNode),
  ]);
  progress.show('reading workloads');
  const workloadOf = await workloadsOf(pods, namespaces, {
    client,
    signal: stop,
    onProgress: (done, of) => progress.show(`reading workloads: ${done} of ${of}`),
  });
  progress.end();
  if (nodes === undefined)
    io.err('archwright: warning: no permission to read nodes; the report does not show where pods run\n');
  const surroundings = createPodContext({
    input: sortObjects([], 'default'),
    cluster: clusterObjects({ client, log: around.context.log }),
    warn: (message) => io.err(`archwright: warning: ${message}\n`),
    limitMs: clusterLimitMs,
  });
  const { factsOfPod, asked, budgetMs, pullSecrets } = await openPodFacts(
    { invocation, around, surroundings, onProblem },
    opened,
  );
  const driftOf = (await readDrift(around.context.configuration, surroundings, stop)) ?? (() => undefined);
  const sets = [...Map.groupBy(pods, ({ made }) => made).values()];
  let done = 0;
  const judged = await concurrently(sets, concurrentSets, async ([first, ...more]) => {
    if (first === undefined) return [];
    const facts = await factsOfPod({ ...first.made.wanted, budgetMs });
    done += 1;
    progress.show(`images of ${done} of ${sets.length} kinds of pods`);
    const judgedAs = judgeImages(first.made, architecture, (image) => facts.get(image));
    const images = judgedAs.map((each) => withGain(each, architecture, driftOf(each.image)));
    const isBroken = (image: string): boolean => facts.get(image)?.brokenOn?.includes(architecture) === true;
    return [first, ...more].map((pod) => {
      const workload = workloadOf(pod);
      const on = pod.node === undefined ? undefined : nodes?.get(pod.node);
      const judged = judge(pod, workload, images, architecture);
      const blockers = blockersOf({ pod, workload, images }, architecture, isBroken);
      return { pod, workload, images, on, judged, blockers };
    });
  });
  progress.end();
  return { pods: judged.flat(), asked, isComplete: problems.size === 0, pullSecrets };
}
