/** Gates in a real cluster: pods that wait for a registry, that are let go, and that somebody else holds too. */
import t from 'tap';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import {
  configureWebhook,
  metricOf,
  prepareArchwright,
  startAgent,
  startController,
  startWebhook,
} from './archwright.ts';
import { patience, startCluster } from './harness.ts';
import { startImages } from './images.ts';
import { waitFor, watch } from './watch.ts';

interface Event extends KubeObject {
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly name?: string };
}

const gate = 'arch.example/scheduling-gate';
const path = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;

void t.test('gates in a real cluster', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1, s390x: 1 } });
  t.teardown(() => cluster.stop());
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const agent = await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } });
  const settings = {
    'fallback-architecture': 's390x',
    'on-unknown-image': 'gate',
  };
  const webhook = await startWebhook(cluster, { tls, agents: [agent], settings });
  const controller = await startController(cluster, {
    tls,
    agents: [agent],
    settings: { ...settings, 'max-gate-duration': '20s' },
  });
  await configureWebhook(cluster, { tls, webhook });
  await waitFor(
    cluster.client,
    '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller',
    (lease) => lease !== undefined,
  );

  const create = (name: string, image: string, more: object = {}): Promise<Pod> =>
    cluster.create<Pod>({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'app', image }], ...more },
    });
  const gatesOf = (pod: Pod | undefined): readonly string[] =>
    (pod?.spec.schedulingGates ?? []).map(({ name }) => name);
  const nodeOf = async (name: string): Promise<string | undefined> => {
    const bound = await waitFor<Pod>(cluster.client, path(name), (now) => now?.spec.nodeName !== undefined);
    return bound?.spec.nodeName;
  };

  await t.test('a registry that is slow: the pod waits, and runs where it can', async (t) => {
    images.public.faults.add({ path: /\/late\//u, fault: { kind: 'delay', ms: 2000 } });
    const linux = { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] };
    const terms = [{ matchExpressions: [linux] }, { matchExpressions: [linux] }];
    const pod = await create('late', images.push('late', ['arm64']), {
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
      },
    });
    t.same(gatesOf(pod), [gate]);
    t.equal(await nodeOf('late'), 'arm64-0');
  });

  await t.test('the gates of others stay', async (t) => {
    images.public.faults.add({ path: /\/held\//u, fault: { kind: 'delay', ms: 2000 } });
    const pod = await create('held', images.push('held', ['arm64']), {
      schedulingGates: [{ name: 'x.example/theirs' }],
    });
    t.same(gatesOf(pod), ['x.example/theirs', gate]);
    const left = await waitFor<Pod>(cluster.client, path('held'), (now) => !gatesOf(now).includes(gate));
    t.same(gatesOf(left), ['x.example/theirs']);
  });

  await t.test('an image that nobody has: the fallback after its time, and an event', async (t) => {
    const image = images.push('there', ['arm64']).replace('/there:', '/never:');
    await create('never', image);
    t.equal(await nodeOf('never'), 's390x-0');
    const events = await watch<Event>(cluster.client, '/api/v1/namespaces/default/events');
    t.teardown(() => events.close());
    await events.until('an event says why', (found) =>
      [...found.values()].some(
        ({ reason, message = '', involvedObject }) =>
          reason === 'ImageUnknown' && involvedObject?.name === 'never' && message.includes('not-found'),
      ),
    );
    t.ok((await metricOf(controller, 'archwright_gate_decisions_total', { outcome: 'fallback' })) >= 1);
  });

  await t.test('opted out while it waits: it goes at once', async (t) => {
    const image = images.push('out', ['arm64']).replace('/out:', '/out-never:');
    await create('out', image);
    const body = { metadata: { labels: { 'arch.example/placement': 'disabled' } } };
    await cluster.client.patch(path('out'), { type: 'merge', body }, { signal: patience() });
    t.ok(await nodeOf('out'));
  });
});
