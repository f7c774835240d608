/** The cluster that the other tests here stand on does what they take for granted. */
import { existsSync } from 'node:fs';
import t from 'tap';
import type { Pod } from '../../../src/kube/objects.ts';
import { startCluster } from './harness.ts';
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
