/**
 * Leaving a real cluster: `archwright clean` with running controllers and new pods, killed and run again.
 * Afterwards only users' pods differ. Also: pods are gated only while a controller leads.
 */
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import {
  configureWebhook,
  ownNamespace,
  prepareArchwright,
  runArchwright,
  startController,
  startWebhook,
} from './archwright/archwright.ts';
import { startCluster, type Cluster } from './harness.ts';
import { differences, listEverything, steadyListing } from './control-plane/listing.ts';
import { isGated, podOf } from './control-plane/pods.ts';

const leaseMs = 6000;
const controllerSettings = {
  certificates: 'builtin',
  'webhook-configuration': 'archwright',
  'taint-architectures': 'arm64',
};
const tuning = { leaseTimes: { leaseDurationMs: leaseMs, renewDeadlineMs: 4000, retryPeriodMs: 500 } };

async function createPod(cluster: Cluster, name: string, dryRun = false): Promise<Pod> {
  const pod = podOf(name, '127.0.0.1:1/nobody/knows:1');
  return cluster.post<Pod>('/api/v1/namespaces/default/pods', pod, dryRun ? { dryRun: 'All' } : {});
}

async function untilGating(cluster: Cluster, wanted: boolean, ms: number): Promise<number> {
  const began = performance.now();
  for (let count = 0; performance.now() - began < ms; count += 1) {
    if (isGated(await createPod(cluster, `probe-${count}`, true)) === wanted)
      return performance.now() - began;
    await pause(100);
  }
  throw new Error(`pods are ${wanted ? 'not ' : ''}gated after ${ms} ms`);
}

void t.test('pods are gated only while a controller leads, and clean leaves nothing behind', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  const tls = await prepareArchwright(cluster);
  const before = await steadyListing(cluster, ['pods']);

  const webhook = await startWebhook(cluster, { tls });
  await configureWebhook(cluster, { tls, webhook });
  t.equal(isGated(await createPod(cluster, 'probe', true)), false, 'no controller leads yet');

  let first = await startController(cluster, { tls, name: 'first', tuning, settings: controllerSettings });
  await untilGating(cluster, true, 30_000);
  first.process.signal('SIGKILL');
  const stops = await untilGating(cluster, false, leaseMs + 5000);
  t.comment(`gating ended ${Math.round(stops)} ms after the leader was killed`);
  first = await startController(cluster, { tls, name: 'again', tuning, settings: controllerSettings });
  await startController(cluster, { tls, name: 'second', tuning, settings: controllerSettings });
  await untilGating(cluster, true, 30_000);

  const secrets = await cluster.watch<KubeObject>(`/api/v1/namespaces/${ownNamespace}/secrets`);
  await secrets.until('the controller made its Secrets', (found) => found.size >= 4);
  secrets.close();
  const nodes = await cluster.watch<KubeObject>('/api/v1/nodes');
  await nodes.until('a node is tainted', (found) =>
    JSON.stringify([...found.values()]).includes('arch.example/architecture'),
  );
  nodes.close();

  const enough = new AbortController();
  let created = 0;
  const creating = (async () => {
    for (; !enough.signal.aborted; created += 1) await createPod(cluster, `app-${created}`);
  })();
  const pods = await cluster.watch<Pod>('/api/v1/pods');
  const gatedNow = (): number => [...pods.objects.values()].filter(isGated).length;
  await pods.until('pods wait behind gates', () => gatedNow() >= 50);

  const args = ['clean', `--kubeconfig=${cluster.kubeconfig}`, '--webhook-configuration=archwright'];
  const killed = await runArchwright(cluster, args, (line, running) => {
    if (line.includes('webhook configuration: 1 done')) running.signal('SIGKILL');
  });
  t.equal(killed.code, 'SIGKILL', 'the first clean is killed');
  t.ok(gatedNow() > 0, 'gates are left');

  const { code, output } = await runArchwright(cluster, args);
  t.equal(code, 0, output);
  enough.abort();
  await creating;
  await pods.until('the last pods', (found) => found.has(`default/app-${created - 1}`));
  t.equal(gatedNow(), 0, `none of ${created} pods is gated`);
  pods.close();
  const left = async (): Promise<readonly string[]> =>
    differences(before, await listEverything(cluster, ['pods']));
  t.same(await left(), [], 'the cluster is as before');

  // Controllers that released the Lease for clean do not take it again.
  await pause(leaseMs + 2000);
  t.same(await left(), [], 'running controllers change nothing');
  t.match(first.process.log(), /removed from this cluster by archwright clean/);
  t.equal((await runArchwright(cluster, args)).code, 0, 'a repeated clean exits with 0');
  t.same(await left(), []);
});
