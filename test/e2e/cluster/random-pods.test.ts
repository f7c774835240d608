/**
 * Random pods through a real API server, webhook, controller and scheduler. No pod lands on a node that its
 * images or its author exclude; no pod stays pending although it could run.
 *
 *   E2E_SEED    seed of the pods. Default: random; it is printed.
 *   E2E_CASES   number of pods. Default: 500.
 *   E2E_RECORD  1: writes what Kubernetes says about the pods without archwright into test/recorded.
 */
import t from 'tap';
import { createRandom, seedOfRun, casesOfRun } from '../random.ts';
import { prepareArchwright } from './archwright/archwright.ts';
import { startCluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import {
  createAll,
  daemonProblem,
  daemonSets,
  daemonSetToSend,
  isDaemon,
  podProblem,
  addFaults,
  podToSend,
  pushImages,
  ungateOther,
  untilRolledOut,
  untilSettled,
  warmUp,
  type PodProblem,
} from './random-pods/run-cases.ts';
import { generateCase, type Case } from '../../support/judge/generate.ts';
import { nodesWithoutArchwright } from '../../support/judge/model.ts';
import { expectedOf, expectedOfDaemon } from './random-pods/expected.ts';
import { nodes, policies, type ModelPolicy } from '../../support/judge/world.ts';
import { isRecording, record } from '../../recorded/recorded.ts';
import { verdictsOf } from './random-pods/verdicts.ts';
import { isGated, podsOf, type PodNow } from './control-plane/pods.ts';
import { startArchwright } from './archwright/start.ts';

const seed = seedOfRun();
const count = casesOfRun(500);
const settleMs = 90_000;
/** Several times the delay of slow and failing registries; short enough for images that stay unknown. */
const maxGateDuration = '30s';
/** Time for a controller to release its Lease. The next one would have to wait until it expires. */
const politeMs = 20_000;
const shown = 5;

void t.test('random pods run only on nodes that the model allows', async (t) => {
  t.comment(`E2E_SEED=${seed} E2E_CASES=${count}`);
  const cluster = await startCluster({ nodes, schedulerQps: 1000 }, t);
  const random = createRandom(seed);
  const cases = Array.from({ length: count }, (_, index) => generateCase(random, index));
  const images = await startImages(cluster);
  const references = pushImages(images);
  const pods = await cluster.watch<PodNow>('/api/v1/pods', t);
  const everGated = new Set<string>();
  pods.onChange(({ object }) => {
    if (isGated(object)) everGated.add(`${object.metadata?.namespace}/${object.metadata?.name}`);
  });
  const names = cases.map(({ name }) => name);

  function report(problems: readonly (PodProblem | undefined)[], what: string): void {
    const wrong = problems.filter((verdict) => verdict !== undefined);
    const first = wrong.slice(0, shown).map(({ name, problem }) => `${name} ${problem}`);
    for (const verdict of wrong.slice(0, shown)) t.comment(JSON.stringify(verdict));
    t.equal(wrong.length, 0, [what, ...first].join('; '));
  }

  async function checkDaemons(own: readonly Case[], policy: ModelPolicy, namespace: string): Promise<void> {
    const some = own.filter(isDaemon).slice(0, Math.ceil(own.length / 20));
    const sets = some.map((one) => daemonSetToSend(one, references));
    const refused = await createAll(cluster, namespace, sets, daemonSets(namespace));
    await untilRolledOut(cluster, namespace, sets.length - refused.size);
    // The watch of pods may be behind the watch that saw the DaemonSets ready.
    const now = await cluster.list<PodNow>(`/api/v1/namespaces/${namespace}/pods`);
    const problems = some.flatMap((one) => {
      const found = podsOf(now, one.name).flatMap(({ spec }) => spec.nodeName ?? []);
      const problem = daemonProblem(expectedOfDaemon(one, policy), found, refused.get(one.name));
      return problem === undefined ? [] : [`${one.name} ${problem}: ${JSON.stringify(one.pod)}`];
    });
    t.strictSame(
      problems.slice(0, shown),
      [],
      `${policy.name}: ${some.length} DaemonSets, ${refused.size} refused`,
    );
  }

  // Without archwright, the model's rules about nodes are compared with the same scheduler.
  await cluster.createNamespace('without');
  await createAll(
    cluster,
    'without',
    cases.map((one) => podToSend(one, references)),
  );
  for (const { name, hasOtherGate } of cases) if (hasOtherGate) await ungateOther(cluster, 'without', name);
  await untilSettled(pods, names, 'without', settleMs);
  report(
    cases.map((one) => {
      const may = nodesWithoutArchwright(one);
      const expected = { may, must: may.length > 0, able: may, mayBeRefused: false };
      return podProblem(one, { expected, now: pods.objects.get(`without/${one.name}`) });
    }),
    'without archwright, all pods are where the model places them',
  );
  const scheduled = (name: string): PodNow | undefined => pods.objects.get(`without/${name}`);
  if (isRecording) record('kubernetes', await verdictsOf(cluster, cases, scheduled));

  const tls = await prepareArchwright(cluster);
  for (const [index, policy] of policies.entries()) {
    const own = cases.filter((_, each) => each % policies.length === index);
    const namespace = `random-${index}`;
    await cluster.createNamespace(namespace);
    addFaults(images);
    const started = await startArchwright(
      cluster,
      { images, tls, settings: policy.settings, failurePolicy: 'Fail', daemonSets: true },
      { 'max-gate-duration': maxGateDuration },
    );
    await warmUp(cluster, pods, namespace, references);
    const sent = own.map((one) => podToSend(one, references));
    const refused = await createAll(cluster, namespace, sent);
    const created = own.filter(({ name }) => !refused.has(name));
    for (const { name, hasOtherGate } of created)
      if (hasOtherGate) await ungateOther(cluster, namespace, name);
    const names = created.map(({ name }) => name);
    await untilSettled(pods, names, namespace, settleMs).catch((error: unknown) => {
      t.fail((error as Error).message);
    });
    const placed = own.map((one) =>
      podProblem(one, {
        expected: expectedOf(one, policy, everGated.has(`${namespace}/${one.name}`)),
        now: pods.objects.get(`${namespace}/${one.name}`),
        refusal: refused.get(one.name),
      }),
    );
    const bound = created.filter(({ name }) => pods.objects.get(`${namespace}/${name}`)?.spec.nodeName);
    const gated = created.filter(({ name }) => everGated.has(`${namespace}/${name}`));
    t.comment(
      `${policy.name}: ${own.length} pods, ${refused.size} refused, ${gated.length} gated, ${bound.length} bound`,
    );
    report(placed, `${policy.name}: all pods are where their authors, their images and the settings allow`);
    t.ok(bound.length > own.length / 3, 'at least a third could run');
    t.ok(gated.length > own.length / 50, 'some were gated');
    await checkDaemons(own, policy, namespace);
    await cluster.delete('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright');
    const servers = [started.webhook, started.controller, ...started.agents];
    await Promise.all(servers.map(({ process }) => process.stop(politeMs)));
  }
});
