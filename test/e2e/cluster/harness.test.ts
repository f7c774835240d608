/** The cluster that the other tests here use. */
import { existsSync } from 'node:fs';
import t from 'tap';
import { startCluster } from './harness.ts';
import { podOf, runningPod } from './control-plane/pods.ts';

void t.test(
  'the cluster schedules pods by architecture, survives an API server restart, and leaves nothing behind',
  async (t) => {
    const before = performance.now();
    const cluster = await startCluster({ nodes: { amd64: 1, s390x: 1 } });
    t.comment(`ready in ${Math.round(performance.now() - before)} ms`);
    const pids = [...cluster.pids().values()];
    t.equal(pids.length, 5);
    const runsOn = async (name: string, architecture: string): Promise<string | undefined> => {
      const nodeSelector = { 'kubernetes.io/arch': architecture };
      await cluster.create(podOf(name, 'registry.example/app:1', { nodeSelector }));
      return (await runningPod(cluster, name)).spec.nodeName;
    };
    try {
      t.equal(await runsOn('first', 's390x'), 's390x-0');
      await cluster.stopApiServer();
      await cluster.startApiServer();
      t.equal(await runsOn('second', 'amd64'), 'amd64-0');
      pids.push(...cluster.pids().values());
    } finally {
      await cluster.stop();
    }
    const running = pids.filter((pid) => existsSync(`/proc/${pid}`));
    t.same(running, [], 'no process is left');
    t.notOk(existsSync(cluster.directory), 'no file is left');
  },
);
