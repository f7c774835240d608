/** The cluster and the processes that the other tests here use. */
import { existsSync } from 'node:fs';
import t from 'tap';
import { metricOf, runArchwright } from './archwright.ts';
import { startCluster } from './harness.ts';
import { nodeOf, podOf, runningPod } from './pods.ts';
import { startAdmission } from './start-archwright.ts';

void t.test(
  'a cluster schedules pods by architecture, survives its API server, and leaves nothing',
  async (t) => {
    const before = performance.now();
    const cluster = await startCluster({ nodes: { amd64: 1, s390x: 1 } });
    t.comment(`ready in ${Math.round(performance.now() - before)} ms`);
    let stopped = false;
    t.teardown(() => (stopped ? undefined : cluster.stop()));
    const runsOn = async (name: string, architecture: string): Promise<string | undefined> => {
      const nodeSelector = { 'kubernetes.io/arch': architecture };
      await cluster.create(podOf(name, 'registry.example/app:1', { nodeSelector }));
      return (await runningPod(cluster, name)).spec.nodeName;
    };

    t.equal(await runsOn('first', 's390x'), 's390x-0');
    await cluster.stopApiServer();
    await cluster.startApiServer();
    t.equal(await runsOn('second', 'amd64'), 'amd64-0');

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

void t.test('archwright beside a cluster: pods go to nodes that can run their images', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1, s390x: 1 } });
  t.teardown(() => cluster.stop());
  // No controller decides later what a busy machine does not learn in 150 ms.
  const { images, webhook } = await startAdmission(cluster, { settings: { 'inline-budget': '5s' } });
  await cluster.create(podOf('open', images.push('open', ['arm64'])));
  await cluster.create(podOf('closed', images.push('closed', ['s390x', 'riscv64'], 'private')));
  t.equal(await nodeOf(cluster, 'open'), 'arm64-0');
  t.equal(await nodeOf(cluster, 'closed'), 's390x-0');
  t.ok((await metricOf(webhook, 'archwright_admissions_total')) >= 2, 'metrics can be read');
  t.match(await runArchwright(cluster, ['--version']), { code: 0, output: /^archwright / });
});
