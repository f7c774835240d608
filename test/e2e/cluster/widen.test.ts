/**
 * `constraints: widen` in dry runs against a real API server: random pods, most with named architectures as
 * in charts. Each goes to a namespace with `widen` and one with `keep`. By an independent model, none is
 * refused, gets fewer nodes than under `keep`, or a new node that cannot run one of its images.
 *
 *   E2E_SEED    seed of the pods. Default: random; it is printed.
 *   E2E_CASES   number of pods. Default: 1000.
 */
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { NodeSelectorTerm, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { podConfig } from '../../policy/resources/objects.ts';
import { isIn, requiring, termOf } from '../../support/placement-input.ts';
import { selects, tolerates } from '../../support/scheduler-model.ts';
import { createRandom, seedOfRun, type Random, casesOfRun } from '../random.ts';
import { prepareArchwright } from './archwright/archwright.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { startCluster, type Cluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import { podToSend, pushImages } from './random-pods/run-cases.ts';
import { generateCase, type Case } from '../../support/judge/generate.ts';
import { modelNodes } from '../../support/judge/model.ts';
import { verdictOf } from '../../support/judge/runtimes.ts';
import { images as randomPodImages, nodes, policies, zones } from '../../support/judge/world.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import { startAdmission } from './archwright/start.ts';
import { concurrently } from '../../../src/async/concurrently.ts';

const seed = seedOfRun();
const count = casesOfRun(1000);
const shown = 5;

const arch = 'kubernetes.io/arch';
const beta = 'beta.kubernetes.io/arch';
const decision = 'arch.example/decision';
const sandbox = 'sandbox';

const named = ['amd64', 'amd64', 'amd64', 'arm64', 'arm64', 's390x', 'ppc64le'] as const;
/** Most pods of charts have multi-arch images. Some nodes cannot run `v3-and-arm`; `slow-all` is unknown. */
const usual = ['all', 'all', 'three', 'three', 'two', 'two', 'v3-and-arm', 'slow-all'];

/** How charts name architectures. */
function namedArchitectures(random: Random): Partial<PodSpec> {
  const name = random.pick(named);
  const other = random.pick(named);
  const zone = isIn('zone', random.pick(zones));
  const ssd = { key: 'disk', operator: 'Exists' };
  const terms = (...all: NodeSelectorTerm[]): Partial<PodSpec> => requiring(...all);
  return random.pick<() => Partial<PodSpec>>([
    () => ({ nodeSelector: { [arch]: name } }),
    () => ({ nodeSelector: { [beta]: name } }),
    () => ({ nodeSelector: { [arch]: name, [beta]: name, zone: 'a' } }),
    () => ({ nodeSelector: { [arch]: name }, ...terms(termOf(zone), termOf(ssd)) }),
    () => ({ nodeSelector: { [arch]: name }, runtimeClassName: sandbox }),
    () => terms(termOf(isIn(arch, name))),
    () => terms(termOf(isIn(beta, name)), termOf(isIn(arch, name))),
    () => terms(termOf(zone, isIn(arch, name)), termOf(isIn(arch, name), ssd)),
    () => terms(termOf(isIn(arch, name), zone), termOf(isIn(arch, other))),
    () => terms(termOf(isIn(arch, name, ...(other === name ? [] : [other])))),
    () => terms(termOf(isIn(arch, name), { key: arch, operator: 'NotIn', values: [other] })),
    () => ({ ...terms(termOf(isIn(arch, name, 'arm64'), ssd)), nodeSelector: { [beta]: name } }),
  ])();
}

function chartCase(random: Random, index: number): Case {
  const one = generateCase(random, index);
  if (random.chance(0.25)) return one;
  const { affinity: _affinity, nodeSelector: _, ...spec } = one.pod.spec;
  const own = { ...one.pod, spec: { ...spec, ...namedArchitectures(random) } };
  if (random.chance(0.3)) return { ...one, pod: own };
  const repository = random.pick(usual);
  const images = randomPodImages.filter((each) => each.repository === repository);
  const { initContainers: _init, volumes: _volumes, ...rest } = own.spec;
  const containers = [{ name: 'app', image: repository }];
  return { ...one, images, pod: { ...own, spec: { ...rest, containers } } };
}

/** @returns the pod to store, or the reason of the refusal */
async function dryRun(cluster: Cluster, namespace: string, pod: Pod): Promise<Pod | string> {
  const path = `/api/v1/namespaces/${namespace}/pods`;
  return cluster.post<Pod>(path, pod, { dryRun: 'All' }).catch(String);
}

/** RepeatedReports a dry run until the pod is admitted as expected: the webhook needs time to learn the facts. */
async function untilAdmitted(
  cluster: Cluster,
  namespace: string,
  pod: Pod,
  isIt: (text: string) => boolean,
): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const answer = JSON.stringify(await dryRun(cluster, namespace, pod));
    if (isIt(answer)) return;
    if (performance.now() > deadline) throw new Error(`not admitted as expected: ${answer}`);
    await pause(100);
  }
}

function recordOf(pod: Pod): { readonly widened?: object; readonly architectures?: readonly string[] } {
  return JSON.parse(pod.metadata?.annotations?.[decision] ?? '{}') as object;
}

const nodesOf = (pod: Pod): readonly string[] =>
  modelNodes
    .filter((node) => selects(pod.spec, node) && tolerates(pod.spec.tolerations, node))
    .map(({ name }) => name);

/** The fault of a widened pod. @param sent the original pod; taints of nodes do not count for it */
function problemOf(one: Case, sent: Pod, kept: Pod, wide: Pod): string | undefined {
  const before = nodesOf(kept);
  const after = nodesOf(wide);
  const lost = before.filter((name) => !after.includes(name));
  if (lost.length > 0) return `lost ${lost.join()}`;
  for (const node of modelNodes.filter((each) => selects(wide.spec, each) && !selects(sent.spec, each)))
    for (const image of one.images) {
      if (image.knowledge !== 'at once') return `widened with the unknown ${image.repository}`;
      if (verdictOf(image, node.node) !== 'yes') return `${image.repository} on ${node.name}`;
    }
  const { widened, architectures = [] } = recordOf(wide);
  if (widened === undefined)
    return schedulingOf(wide) === schedulingOf(kept) ? undefined : 'changed without a record';
  if (architectures.length < 2) return 'recorded without its architectures';
  return sent.spec.runtimeClassName === undefined ? undefined : 'widened with a RuntimeClass';
}

function schedulingOf({ spec }: Pod): string {
  const { nodeSelector, affinity, tolerations, schedulingGates } = spec;
  return JSON.stringify({ nodeSelector, affinity, tolerations, schedulingGates });
}

/** A policy that requires amd64 for a namespace's pods. The API server reapplies it after a webhook. */
async function requireAmd64In(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.createNamespace(namespace);
  await cluster.make('MutatingAdmissionPolicy', namespace, {
    spec: {
      reinvocationPolicy: 'IfNeeded',
      failurePolicy: 'Fail',
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: {
            expression: `[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"${arch}": "amd64"}}]`,
          },
        },
      ],
    },
  });
  await cluster.make('MutatingAdmissionPolicyBinding', namespace, { spec: { policyName: namespace } });
}

void t.test('random pods of charts keep their nodes when constraints are widened', async (t) => {
  t.comment(`E2E_SEED=${seed} E2E_CASES=${count}`);
  const random = createRandom(seed);
  const cases = Array.from({ length: count }, (_, index) => chartCase(random, index));
  const cluster = await startCluster({ nodes }, t);
  await installDefinitions(cluster);
  await Promise.all(['warm', 'widened', 'kept'].map((name) => cluster.createNamespace(name)));
  const keep = podConfig({ constraints: 'keep' }, 'keep');
  await cluster.create({ ...keep, metadata: { ...keep.metadata, namespace: 'kept' } });
  await cluster.make('RuntimeClass', sandbox, {
    handler: 'runc',
    scheduling: { nodeSelector: { disk: 'ssd' } },
  });
  await requireAmd64In(cluster, 'insisting');
  const images = await startImages(cluster);
  const references = pushImages(images);
  const tls = await prepareArchwright(cluster);
  const imageOf = (repository: string): string => references.get(repository) ?? '';

  for (const [index, policy] of policies.entries()) {
    const own = cases.filter((_, each) => each % policies.length === index);
    const settings = {
      ...policy.settings,
      constraints: 'widen',
      'on-unknown-image': 'allow',
      'on-no-common-architecture': 'allow',
      // Avoids a late first lookup of an image. A dry run causes none.
      'inline-budget': '5s',
    };
    const started = await startAdmission(cluster, { images, tls, settings, failurePolicy: 'Fail' });
    for (const { repository, knowledge } of randomPodImages)
      if (knowledge === 'at once')
        await cluster.create(
          podOf(`warm-${index}-${repository}`, imageOf(repository), {}, { namespace: 'warm' }),
        );
    const pinned = podOf('pinned', imageOf('two'), { nodeSelector: { [arch]: 'amd64' } });
    await untilAdmitted(cluster, 'widened', pinned, (text) => text.includes('widened'));
    await untilAdmitted(cluster, 'kept', pinned, (text) => !text.includes('widened'));
    const onOneNode = podOf('level', imageOf('v3'), { nodeSelector: { [arch]: 'amd64' } });
    await untilAdmitted(cluster, 'kept', onOneNode, (text) => text.includes('"amd64-b"'));

    const problems: string[] = [];
    let widened = 0;
    await concurrently(own, 8, async (one) => {
      const sent = podToSend(one, references);
      const kept = await dryRun(cluster, 'kept', sent);
      const wide = await dryRun(cluster, 'widened', sent);
      if (typeof kept === 'string' || typeof wide === 'string') {
        problems.push(`${one.name} refused: ${JSON.stringify({ sent, kept, wide })}`);
        return;
      }
      const problem = problemOf(one, sent, kept, wide);
      const pods = [sent, kept, wide].map(schedulingOf);
      if (problem !== undefined) problems.push(`${one.name} ${problem}: ${pods.join('; ')}`);
      if (recordOf(wide).widened) widened += 1;
    });
    t.same(problems.slice(0, shown), [], `${policy.name}: ${own.length} pods, ${widened} widened`);
    t.ok(widened > own.length / 20, `${policy.name}: ${widened} were widened`);

    const spec = { nodeSelector: { [arch]: 'amd64', disk: 'ssd', zone: 'b', cores: '64' } };
    const name = `only-arm64-${index}`;
    await cluster.create(podOf(name, imageOf('two'), spec, { namespace: 'widened' }));
    t.equal(await nodeOf(cluster, name, 'widened'), 'arm64-b', 'if none of its own nodes fits');
    const isPinned = (text: string): boolean =>
      text.includes(`"nodeSelector":{"${arch}":"amd64"}`) && !text.includes('widened');
    const insisted = untilAdmitted(cluster, 'insisting', pinned, isPinned);
    await t.resolves(insisted, 'a mutating policy applies after the webhook');
    await cluster.delete('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright');
    await Promise.all([started.webhook, ...started.agents].map(({ process }) => process.stop()));
  }
});
