/**
 * `constraints: widen` in dry runs against a real API server: random pods, most with named architectures as
 * in charts. None is refused, and each could land on exactly the nodes that the judge names.
 *
 *   E2E_SEED    seed of the pods. Default: random; it is printed.
 *   E2E_CASES   number of pods. Default: 1000.
 */
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { podConfig } from '../../policy/resources/objects.ts';
import { selects, tolerates } from '../../support/scheduler-model.ts';
import { generateChartCase, sandbox, type Case } from '../../support/judge/generate.ts';
import { judge } from '../../support/judge/judge.ts';
import { modelNodes } from '../../support/judge/model.ts';
import { images as randomPodImages, nodes, policies, type ModelPolicy } from '../../support/judge/world.ts';
import { createRandom, seedOfRun, casesOfRun } from '../random.ts';
import { prepareArchwright } from './archwright/archwright.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { startCluster, type Cluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import { podToSend, pushImages } from './random-pods/run-cases.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import { startAdmission } from './archwright/start.ts';
import { concurrently } from '../../../src/async/concurrently.ts';

const seed = seedOfRun();
const count = casesOfRun(1000);
const shown = 5;

const arch = 'kubernetes.io/arch';

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

/** Whether the record in a pod's JSON text says so. */
function isWidened(text: string): boolean {
  return text.includes('\\"widened\\":');
}

/** The fault of an admitted pod. */
function problemOf(one: Case, policy: ModelPolicy, { spec }: Pod): string | undefined {
  const own = one.pod.spec;
  const nodeSelector = { ...own.nodeSelector, ...sandbox.nodeSelector };
  const pod = own.runtimeClassName === undefined ? one.pod : { ...one.pod, spec: { ...own, nodeSelector } };
  const expected = judge({ ...one, pod }, policy, 'creation').nodes;
  const found = modelNodes
    .filter((node) => selects(spec, node) && tolerates(spec.tolerations, node))
    .map(({ name }) => name);
  return found.join() === expected.join() ? undefined : `${found.join()} instead of ${expected.join()}`;
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
  const cases = Array.from({ length: count }, (_, index) => generateChartCase(random, index));
  const cluster = await startCluster({ nodes }, t);
  await installDefinitions(cluster);
  await Promise.all(['warm', 'widened', 'kept'].map((name) => cluster.createNamespace(name)));
  const keep = podConfig({ constraints: 'keep' }, 'keep');
  await cluster.create({ ...keep, metadata: { ...keep.metadata, namespace: 'kept' } });
  const { name: runtimeClass, nodeSelector } = sandbox;
  await cluster.make('RuntimeClass', runtimeClass, { handler: 'runc', scheduling: { nodeSelector } });
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
    await untilAdmitted(cluster, 'widened', pinned, isWidened);
    await untilAdmitted(cluster, 'kept', pinned, (text) => !isWidened(text));
    const onOneNode = podOf('level', imageOf('v3'), { nodeSelector: { [arch]: 'amd64' } });
    await untilAdmitted(cluster, 'kept', onOneNode, (text) => text.includes('"amd64-b"'));

    const problems: string[] = [];
    let widened = 0;
    await concurrently(own, 8, async (one) => {
      const pod = await dryRun(cluster, 'widened', podToSend(one, references));
      const judged: ModelPolicy = { ...policy, onUnknown: 'allow', onNoCommon: 'allow', widens: true };
      const problem = typeof pod === 'string' ? pod : problemOf(one, judged, pod);
      if (problem !== undefined) problems.push(`${one.name} ${problem}: ${JSON.stringify({ one, pod })}`);
      if (isWidened(JSON.stringify(pod))) widened += 1;
    });
    t.same(problems.slice(0, shown), [], `${policy.name}: ${own.length} pods, ${widened} widened`);
    t.ok(widened > own.length / 20, `${policy.name}: ${widened} were widened`);

    const spec = { nodeSelector: { [arch]: 'amd64', disk: 'ssd', zone: 'b', cores: '64' } };
    const name = `only-arm64-${index}`;
    await cluster.create(podOf(name, imageOf('two'), spec, { namespace: 'widened' }));
    t.equal(await nodeOf(cluster, name, 'widened'), 'arm64-b', 'if none of its own nodes fits');
    const isPinned = (text: string): boolean =>
      text.includes(`"nodeSelector":{"${arch}":"amd64"}`) && !isWidened(text);
    const insisted = untilAdmitted(cluster, 'insisting', pinned, isPinned);
    await t.resolves(insisted, 'a mutating policy applies after the webhook');
    await cluster.delete('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright');
    await Promise.all([started.webhook, ...started.agents].map(({ process }) => process.stop()));
  }
});
