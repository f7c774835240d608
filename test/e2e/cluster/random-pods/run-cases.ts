/** Random pods in a cluster: created, waited for, and compared with the model. */
import { ignoring, KubeError } from '../../../../src/kube/api/errors.ts';
import type { Container, KubeObject, Pod } from '../../../../src/kube/api/objects.ts';
import type { Cluster } from '../harness.ts';
import type { Images } from '../archwright/images.ts';
import { podPath, type PodNow } from '../control-plane/pods.ts';
import type { Watched } from '../control-plane/watch.ts';
import { otherGate, type Case } from '../../../support/judge/generate.ts';
import type { Expected } from './expected.ts';
import { isIndex } from '../../../support/judge/runtimes.ts';
import { images as randomPodImages } from '../../../support/judge/world.ts';
import { concurrently } from '../../../../src/async/concurrently.ts';

/** Ten times as long as an admission waits. */
const slowMs = 1500;

/** Repository → reference; puts every image into its registry. */
export function pushImages(images: Images): ReadonlyMap<string, string> {
  const references = new Map<string, string>();
  for (const image of randomPodImages) {
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

export function addFaults({ troubled }: Images): void {
  troubled.faults.clear();
  for (const { repository, knowledge } of randomPodImages) {
    const path = new RegExp(`/${repository}/`);
    if (knowledge === 'slowly') troubled.faults.add(path, { kind: 'delay', ms: slowMs });
    if (knowledge === 'after failures')
      troubled.faults.add(path, { kind: 'status', status: 503 }, { times: 2 });
  }
}

/** The pod with the real references of its images. */
export function podToSend({ pod }: Pick<Case, 'pod'>, references: ReadonlyMap<string, string>): Pod {
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

/** Creates objects, some at a time. @returns the names of those that were refused, with the message */
export async function createAll(
  cluster: Cluster,
  namespace: string,
  objects: readonly KubeObject[],
  path = `/api/v1/namespaces/${namespace}/pods`,
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  await concurrently(objects, 8, async (object) => {
    try {
      await cluster.post(path, object);
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'forbidden') throw error;
      refused.set(object.metadata?.name ?? '', error.message);
    }
  });
  return refused;
}

/** Creates a pod of each image with a fast registry: the first lookup may exceed the wait of admission. */
export async function warmUp(
  cluster: Cluster,
  pods: Watched<PodNow>,
  namespace: string,
  references: ReadonlyMap<string, string>,
): Promise<void> {
  const sent = randomPodImages
    .filter(({ knowledge }) => knowledge === 'at once')
    .map(({ repository }, index) => {
      const containers = [{ name: 'c', image: repository }];
      return podToSend({ pod: { metadata: { name: `warm-${index}` }, spec: { containers } } }, references);
    });
  const refused = await createAll(cluster, namespace, sent);
  const names = sent.map(({ metadata }) => metadata?.name ?? '').filter((name) => !refused.has(name));
  await untilSettled(pods, names, namespace, 60_000);
  for (const name of names) await cluster.delete(podPath(name, namespace));
}

/** Whether a case becomes a DaemonSet: its images are known at once, and it has no gate. */
export function isDaemon({ images, hasOtherGate }: Case): boolean {
  return !hasOtherGate && images.every(({ knowledge }) => knowledge === 'at once');
}

export function daemonSets(namespace: string): string {
  return `/apis/apps/v1/namespaces/${namespace}/daemonsets`;
}

/** A DaemonSet with the pod of a case as its template. */
export function daemonSetToSend(one: Case, references: ReadonlyMap<string, string>): KubeObject {
  const { metadata = {}, spec } = podToSend(one, references);
  const { name = '', labels, annotations } = metadata;
  const own = { app: name };
  const template = { metadata: { labels: { ...labels, ...own }, ...(annotations && { annotations }) }, spec };
  const object = { metadata: { name }, spec: { selector: { matchLabels: own }, template } };
  return object;
}

interface DaemonSetNow extends KubeObject {
  readonly status?: {
    readonly observedGeneration?: number;
    readonly desiredNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

/** Waits until every DaemonSet has a ready pod on each of its nodes. */
export async function untilRolledOut(cluster: Cluster, namespace: string, count: number): Promise<void> {
  const watched = await cluster.watch<DaemonSetNow>(daemonSets(namespace));
  const isDone = ({ metadata, status = {} }: DaemonSetNow): boolean =>
    status.observedGeneration === metadata?.generation &&
    status.desiredNumberScheduled === status.numberReady;
  await watched
    .until(`${count} DaemonSets`, (all) => all.size === count && [...all.values()].every(isDone), 90_000)
    .finally(() => watched.close());
}

/** The problem of a DaemonSet with pods on these nodes; `undefined`: none. */
export function daemonProblem(
  { may, able, mayBeRefused }: Expected,
  found: readonly string[],
  refusal: string | undefined,
): string | undefined {
  if (refusal !== undefined) return mayBeRefused ? undefined : `is refused: ${refusal}`;
  const wrong = found.filter((name) => !may.includes(name));
  if (wrong.length > 0) return `landed on ${wrong.join(' ')}`;
  const missing = mayBeRefused ? [] : able.filter((name) => !found.includes(name));
  return missing.length > 0 ? `could run on ${missing.join(' ')}` : undefined;
}

/** Removes the other controller's gate: again if archwright has changed the pod meanwhile. */
export async function ungateOther(cluster: Cluster, namespace: string, name: string): Promise<void> {
  const path = podPath(name, namespace);
  let done: object | undefined;
  while (!done) {
    const { metadata, spec } = await cluster.get<Pod>(path);
    const schedulingGates = spec.schedulingGates?.filter((gate) => gate.name !== otherGate);
    const body = { metadata: { resourceVersion: metadata?.resourceVersion }, spec: { schedulingGates } };
    done = await ignoring('conflict', cluster.merge(path, body));
  }
}

/** Whether the scheduler has decided: the pod is bound or unschedulable. */
function isSettled(pod: PodNow | undefined): boolean {
  if (pod === undefined) return false;
  if (pod.spec.nodeName !== undefined) return true;
  return (pod.status?.conditions ?? []).some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable',
  );
}

export type PodProblem = NonNullable<ReturnType<typeof podProblem>>;

interface Evidence {
  readonly expected: Expected;
  readonly now: PodNow | undefined;
  readonly refusal?: string | undefined;
}

/** The problem of one pod; `undefined`: none. */
export function podProblem(one: Case, evidence: Evidence) {
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
