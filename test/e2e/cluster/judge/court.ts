/** Random pods in a cluster: created, waited for, and compared with the model. */
import { KubeError } from '../../../../src/kube/api/errors.ts';
import type { Container, Pod } from '../../../../src/kube/api/objects.ts';
import type { Cluster } from '../harness.ts';
import type { Images } from '../images.ts';
import type { PodNow } from '../pods.ts';
import type { Watched } from '../watch.ts';
import { otherGate, type Case } from './generate.ts';
import type { Expected } from './model.ts';
import { isIndex } from './runtimes.ts';
import { images as judgeImages } from './world.ts';

/** Ten times as long as an admission waits. */
const slowMs = 1500;

/** Repository → reference; puts every image into its registry. */
export function pushImages(images: Images): ReadonlyMap<string, string> {
  const references = new Map<string, string>();
  for (const image of judgeImages) {
    const { repository, platforms, knowledge, private: closed } = image;
    if (knowledge === 'never') {
      references.set(repository, `${images.troubled.host}/${repository}:1`);
      continue;
    }
    const where = closed === true ? 'private' : knowledge === 'at once' ? 'public' : 'troubled';
    references.set(repository, images.push(repository, platforms, where, isIndex(image)));
  }
  return references;
}

export function makeTrouble({ troubled }: Images): void {
  troubled.faults.clear();
  for (const { repository, knowledge } of judgeImages) {
    const path = new RegExp(`/${repository}/`);
    if (knowledge === 'slowly') troubled.faults.add({ path, fault: { kind: 'delay', ms: slowMs } });
    if (knowledge === 'after failures')
      troubled.faults.add({ path, times: 2, fault: { kind: 'status', status: 503 } });
  }
}

/** The pod with the real references of its images. */
export function podToSend({ pod }: Case, references: ReadonlyMap<string, string>): Pod {
  const named = (container: Container): Container => ({
    ...container,
    image: references.get(container.image ?? '') ?? '',
  });
  const { containers, initContainers, volumes, ...rest } = pod.spec;
  return {
    ...pod,
    spec: {
      ...rest,
      containers: containers.map(named),
      ...(initContainers && { initContainers: initContainers.map(named) }),
      ...(volumes && {
        volumes: volumes.map(({ name, image }) => ({
          name,
          image: { reference: references.get(image?.reference ?? '') ?? '' },
        })),
      }),
    },
  };
}

/** Creates pods, some at a time. @returns the names of those that were refused, with the message */
export async function createAll(
  cluster: Cluster,
  namespace: string,
  pods: readonly Pod[],
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  const left = [...pods];
  const work = async (): Promise<void> => {
    for (let pod = left.shift(); pod !== undefined; pod = left.shift()) {
      try {
        await cluster.post(`/api/v1/namespaces/${namespace}/pods`, pod);
      } catch (error) {
        if (!(error instanceof KubeError) || error.code !== 'forbidden') throw error;
        refused.set(pod.metadata?.name ?? '', error.message);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return refused;
}

/** Removes the other controller's gate, by a patch that cannot conflict. */
export async function ungateOther(cluster: Cluster, namespace: string, name: string): Promise<void> {
  const body = { spec: { schedulingGates: [{ $patch: 'delete', name: otherGate }] } };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  await cluster.patch(path, { type: 'strategic', body });
}

/** Whether the scheduler has decided: the pod is bound or unschedulable. */
function isSettled(pod: PodNow | undefined): boolean {
  if (pod === undefined) return false;
  if (pod.spec.nodeName !== undefined) return true;
  return (pod.status?.conditions ?? []).some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable',
  );
}

export type Verdict = NonNullable<ReturnType<typeof judge>>;

interface Evidence {
  readonly expected: Expected;
  readonly now: PodNow | undefined;
  readonly refusal?: string | undefined;
}

/** The problem of one pod; `undefined`: none. */
export function judge(one: Case, evidence: Evidence) {
  const problem = problemOf(evidence);
  const { expected, now } = evidence;
  if (problem === undefined) return undefined;
  const { spec, metadata, status } = now ?? {};
  return {
    name: one.name,
    problem,
    expected,
    now: {
      gates: spec?.schedulingGates,
      nodeSelector: spec?.nodeSelector,
      affinity: spec?.affinity,
      tolerations: spec?.tolerations?.filter(({ key }) => key?.startsWith('node.kubernetes.io/') !== true),
      annotations: metadata?.annotations,
      scheduled: status?.conditions?.find(({ type }) => type === 'PodScheduled'),
    },
    pod: one.pod,
    images: one.images,
  };
}

function problemOf({ expected, now, refusal }: Evidence): string | undefined {
  if (refusal !== undefined) return expected.mayBeRefused ? undefined : `is refused: ${refusal}`;
  if (now === undefined) return 'is gone';
  const node = now.spec.nodeName;
  if (node !== undefined) return expected.may.includes(node) ? undefined : `landed on ${node}`;
  return expected.must ? 'stays pending, and could run' : undefined;
}

/** Waits until every pod is settled. @throws Error with the open ones */
export async function untilSettled(
  pods: Watched<PodNow>,
  names: readonly string[],
  namespace: string,
  ms: number,
): Promise<void> {
  const open = (): readonly string[] =>
    names.filter((name) => !isSettled(pods.objects.get(`${namespace}/${name}`)));
  await pods
    .until('all pods are settled', () => open().length === 0, ms)
    .catch((error: unknown) => {
      const left = open();
      const what = `${left.length} pods are still open: ${left.slice(0, 5).join(' ')}`;
      throw new Error(what, { cause: error });
    });
}
