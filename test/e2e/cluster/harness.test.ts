/** The cluster that the other tests here stand on does what they take for granted. */
import { existsSync } from 'node:fs';
import t from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import {
  configureWebhook,
  metricOf,
  prepareArchwright,
  runArchwright,
  startAgent,
  startWebhook,
} from './archwright.ts';
import { startCluster } from './harness.ts';
import { startImages } from './images.ts';
import { waitFor } from './watch.ts';

type PodNow = Pod & { readonly status?: { readonly phase?: string } };

void t.test(
  'a cluster schedules pods by architecture, survives its API server, and leaves nothing',
  async (t) => {
    const before = performance.now();
    const cluster = await startCluster({ nodes: { amd64: 1, s390x: 1 } });
    t.comment(`ready in ${Math.round(performance.now() - before)} ms`);
    let stopped = false;
    t.teardown(() => (stopped ? undefined : cluster.stop()));
    const pod = (name: string, architecture: string): object => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        nodeSelector: { 'kubernetes.io/arch': architecture },
        containers: [{ name: 'app', image: 'registry.example/app:1' }],
      },
    });
    const runs = async (name: string): Promise<string | undefined> => {
      const path = `/api/v1/namespaces/default/pods/${name}`;
      const running = await waitFor<PodNow>(cluster.client, path, (now) => now?.status?.phase === 'Running');
      return running?.spec.nodeName;
    };

    await cluster.create(pod('first', 's390x'));
    t.equal(await runs('first'), 's390x-0');
    await cluster.restartApiServer();
    await cluster.create(pod('second', 'amd64'));
    t.equal(await runs('second'), 'amd64-0');

    const pids = [...cluster.pids().values()];
    t.equal(pids.length, 5);
    await cluster.stop();
    stopped = true;
    t.same(
      pids.filter((pid) => existsSync(`/proc/${pid}`)),
      [],
      'no process is left',
    );
    t.notOk(existsSync(cluster.directory), 'no file is left');
  },
);

void t.test('the program runs beside a cluster: pods go where their images can run', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1, s390x: 1 } });
  t.teardown(() => cluster.stop());
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const agent = await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } });
  // Nobody decides later what a busy machine has not heard of in 150 ms.
  const settings = { 'inline-budget': '5s' };
  const webhook = await startWebhook(cluster, { tls, agents: [agent], settings });
  await configureWebhook(cluster, { tls, webhook });

  const pod = (name: string, image: string): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'app', image }] },
  });
  await cluster.create(pod('open', images.push('open', ['arm64'])));
  await cluster.create(pod('closed', images.push('closed', ['s390x', 'riscv64'], 'private')));
  for (const [name, node] of [
    ['open', 'arm64-0'],
    ['closed', 's390x-0'],
  ] as const) {
    const path = `/api/v1/namespaces/default/pods/${name}`;
    const bound = await waitFor<PodNow>(cluster.client, path, (now) => now?.spec.nodeName !== undefined);
    t.equal(bound?.spec.nodeName, node, name);
  }
  t.ok((await metricOf(webhook, 'archwright_admissions_total')) >= 2, 'metrics can be read');
  t.match(await runArchwright(cluster, ['--version']), { code: 0, output: /^archwright / });
});
