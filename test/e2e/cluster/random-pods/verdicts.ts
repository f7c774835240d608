/** What Kubernetes says about pods and nodes, for `test/recorded`. */
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import type { Case } from '../../../support/judge/generate.ts';
import type { ModelNode } from '../../../support/scheduler-model.ts';
import type { PodNow } from '../control-plane/pods.ts';
import type { NodeObject } from '../control-plane/nodes.ts';
import type { Cluster } from '../harness.ts';
import { createAll, daemonSets, untilRolledOut } from './run-cases.ts';

/** The part of a pod that chooses its nodes. */
export type Choice = Pick<PodSpec, 'nodeSelector' | 'affinity' | 'tolerations'>;

export interface Verdict {
  readonly choice: Choice;
  /** Those that have a pod of a DaemonSet with this choice. */
  readonly nodes: readonly string[];
  /** Where the scheduler put a single pod; `null`: nowhere. */
  readonly scheduled: string | null;
}

export interface RecordedNodes {
  readonly nodes: readonly ModelNode[];
}

function choiceOf({ pod: { spec } }: Case): Choice {
  const { nodeSelector, affinity, tolerations } = spec;
  return {
    ...(nodeSelector && { nodeSelector }),
    ...(affinity && { affinity }),
    ...(tolerations && { tolerations }),
  };
}

/** @param scheduled the pods of the cases, by name, as the scheduler left them */
export async function verdictsOf(
  cluster: Cluster,
  cases: readonly Case[],
  scheduled: (name: string) => PodNow | undefined,
): Promise<readonly [RecordedNodes, ...Verdict[]]> {
  const distinct = [...new Map(cases.map((one) => [JSON.stringify(choiceOf(one)), one])).values()];
  const namespace = 'verdicts';
  await cluster.createNamespace(namespace);
  const sets = distinct.map((one) => {
    const labels = { app: one.name };
    const spec = { ...choiceOf(one), containers: [{ name: 'c', image: 'any' }] };
    const template = { metadata: { labels }, spec };
    return { metadata: { name: one.name }, spec: { selector: { matchLabels: labels }, template } };
  });
  await createAll(cluster, namespace, sets, daemonSets(namespace));
  await untilRolledOut(cluster, namespace, sets.length);
  const pods = await cluster.list<PodNow>(`/api/v1/namespaces/${namespace}/pods`);
  const places = Map.groupBy(pods, ({ metadata }) => metadata?.labels?.['app'] ?? '');
  const nodes = (await cluster.list<NodeObject>('/api/v1/nodes')).map(({ metadata, spec }) => ({
    name: metadata?.name ?? '',
    labels: metadata?.labels ?? {},
    taints: (spec?.taints ?? []).map(({ key, value = '', effect }) => ({ key, value, effect })),
  }));
  const verdicts = distinct.map((one) => ({
    choice: choiceOf(one),
    nodes: (places.get(one.name) ?? []).map(({ spec }) => spec.nodeName ?? '').sort(),
    scheduled: scheduled(one.name)?.spec.nodeName ?? null,
  }));
  return [{ nodes }, ...verdicts];
}
