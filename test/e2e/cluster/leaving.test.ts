/**
 * Leaving a real cluster: `archwright clean` while controllers run and pods come through the webhook, killed in the middle and run
 * again. Afterwards the cluster is what it was before, apart from the pods of its users. And before that: who leads decides
 * whether pods are gated.
 */
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import {
  configureWebhook,
  ownNamespace,
  prepareArchwright,
  programEntry,
  runArchwright,
  startController,
  startWebhook,
} from './archwright.ts';
import { patience, startCluster, type Cluster } from './harness.ts';
import { startProcess } from './processes.ts';
import { watch } from './watch.ts';

const gate = 'arch.example/scheduling-gate';
const leaseMs = 6000;
const controllerSettings = {
  certificates: 'builtin',
  'webhook-configuration': 'archwright',
  'taint-architectures': 'arm64',
  'lease-duration': '6s',
  'lease-renew-deadline': '4s',
  'lease-retry-period': '500ms',
};

interface Group {
  readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
}
interface Kinds {
  readonly resources: readonly { readonly name: string; readonly verbs: readonly string[] }[];
}

/** Names of everything in the cluster, and what of nodes others than us leave alone. */
async function everything(cluster: Cluster): Promise<string[]> {
  const { client } = cluster;
  const get = <T>(path: string): Promise<T> => client.get<T>(path, { signal: patience() });
  const { groups } = await get<Group>('/apis');
  const bases = [
    '/api/v1',
    ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`),
  ];
  const found = new Set<string>();
  for (const base of bases) {
    const { resources } = await get<Kinds>(base);
    for (const { name, verbs } of resources) {
      if (name.includes('/') || !verbs.includes('list') || name === 'events' || name === 'pods') continue;
      const { items = [] } = await get<{ items?: readonly KubeObject[] }>(`${base}/${name}`);
      for (const { metadata } of items)
        found.add(`${base}/${name} ${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`);
    }
  }
  const nodes = await get<{
    items: readonly (KubeObject & { readonly spec: { readonly taints?: unknown } })[];
  }>('/api/v1/nodes');
  for (const { metadata, spec } of nodes.items)
    found.add(
      `node ${metadata?.name} ${JSON.stringify(spec.taints)} ${Object.keys(metadata?.annotations ?? {})
        .sort()
        .join()}`,
    );
  return [...found].sort();
}

/** Creates a pod of an image that nobody can know. */
async function createPod(cluster: Cluster, name: string, dryRun = false): Promise<Pod> {
  return await cluster.client.create<Pod>(
    '/api/v1/namespaces/default/pods',
    { metadata: { name }, spec: { containers: [{ name: 'app', image: '127.0.0.1:1/nobody/knows:1' }] } },
    { signal: patience(), ...(dryRun && { query: { dryRun: 'All' } }) },
  );
}

const isGated = ({ spec }: Pod): boolean => spec.schedulingGates?.some(({ name }) => name === gate) ?? false;

async function untilGating(cluster: Cluster, wanted: boolean, ms: number): Promise<number> {
  const began = performance.now();
  for (let count = 0; performance.now() - began < ms; count += 1) {
    if (isGated(await createPod(cluster, `probe-${count}`, true)) === wanted)
      return performance.now() - began;
    await pause(100);
  }
  throw new Error(`pods are ${wanted ? 'not ' : ''}gated after ${ms} ms`);
}

void t.test('gates only under a leader; clean leaves nothing behind', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } });
  t.teardown(() => cluster.stop());
  const tls = await prepareArchwright(cluster);
  const before = await everything(cluster);

  const webhook = await startWebhook(cluster, { tls });
  await configureWebhook(cluster, { tls, webhook });
  t.equal(isGated(await createPod(cluster, 'probe', true)), false, 'nobody leads yet');

  let first = await startController(cluster, { tls, name: 'first', settings: controllerSettings });
  await untilGating(cluster, true, 30_000);
  first.process.signal('SIGKILL');
  const stops = await untilGating(cluster, false, leaseMs + 5000);
  t.comment(`gating ended ${Math.round(stops)} ms after the leader was killed`);
  first = await startController(cluster, { tls, name: 'again', settings: controllerSettings });
  await startController(cluster, { tls, name: 'second', settings: controllerSettings });
  await untilGating(cluster, true, 30_000);

  const secrets = await watch<KubeObject>(cluster.client, `/api/v1/namespaces/${ownNamespace}/secrets`);
  await secrets.until('the controller made its Secrets', (found) => found.size >= 4);
  secrets.close();
  const nodes = await watch<KubeObject>(cluster.client, '/api/v1/nodes');
  await nodes.until('a node is tainted', (found) =>
    JSON.stringify([...found.values()]).includes('arch.example/architecture'),
  );
  nodes.close();

  const enough = new AbortController();
  let created = 0;
  const creating = (async () => {
    for (; !enough.signal.aborted; created += 1) await createPod(cluster, `app-${created}`);
  })();
  const pods = await watch<Pod>(cluster.client, '/api/v1/pods');
  const gatedNow = (): number => [...pods.objects.values()].filter(isGated).length;
  await pods.until('pods wait behind gates', () => gatedNow() >= 50);

  const args = ['clean', `--kubeconfig=${cluster.kubeconfig}`, '--webhook-configuration=archwright'];
  const killed = startProcess({
    name: 'archwright-clean-killed',
    program: process.execPath,
    args: [programEntry, ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: cluster.directory },
    logs: cluster.logs,
  });
  killed.onLine((line) => {
    if (line.includes('webhook configuration: 1 done')) setTimeout(() => killed.signal('SIGKILL'), 50);
  });
  t.equal(await killed.ended, 'SIGKILL', 'the first one ends in the middle');
  t.ok(gatedNow() > 0, 'and leaves gates behind');

  const { code, output } = await runArchwright(cluster, args);
  t.equal(code, 0, output);
  enough.abort();
  await creating;
  await pods.until('the last pods', (found) => found.has(`default/app-${created - 1}`));
  t.equal(gatedNow(), 0, `none of ${created} pods waits`);
  pods.close();
  t.same(await everything(cluster), before, 'the cluster is what it was');

  // Whoever stood aside does not come back.
  await pause(leaseMs + 2000);
  t.same(await everything(cluster), before, 'and stays so while controllers run');
  t.match(first.process.log(), /removed from this cluster by archwright clean/);
  t.equal((await runArchwright(cluster, args)).code, 0, 'once more is no error');
  t.same(await everything(cluster), before);
});
