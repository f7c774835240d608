/** Gates in a real cluster: pods wait for a registry, are ungated, and keep gates of other controllers. */
import t from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { requiring } from '../../support/placement-input.ts';
import { metricOf } from './archwright/archwright.ts';
import { startCluster } from './harness.ts';
import { nodeOf, podOf, podPath, waitForEvent, type EventNow } from './control-plane/pods.ts';
import { startArchwright } from './archwright/start.ts';

void t.test('gates work in a real cluster', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1, s390x: 1 } }, t);
  const settings = { 'fallback-architecture': 's390x', 'on-unknown-image': 'gate' };
  const { images, controller } = await startArchwright(cluster, { settings }, { 'max-gate-duration': '20s' });
  const create = (name: string, image: string, more: object = {}): Promise<Pod> =>
    cluster.create<Pod>(podOf(name, image, more));
  const gatesOf = (pod: Pod | undefined): readonly string[] =>
    (pod?.spec.schedulingGates ?? []).map(({ name }) => name);

  await t.test('a slow registry: the pod waits, and runs on a node that can run it', async (t) => {
    images.public.faults.add(/\/late\//u, { kind: 'delay', ms: 2000 });
    const linux = { matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] };
    const pod = await create('late', images.push('late', ['arm64']), requiring(linux, linux));
    t.same(gatesOf(pod), [keys.gate]);
    t.equal(await nodeOf(cluster, 'late'), 'arm64-0');
  });

  await t.test('gates of other controllers are kept', async (t) => {
    images.public.faults.add(/\/held\//u, { kind: 'delay', ms: 2000 });
    const pod = await create('held', images.push('held', ['arm64']), {
      schedulingGates: [{ name: 'x.example/theirs' }],
    });
    t.same(gatesOf(pod), ['x.example/theirs', keys.gate]);
    const isOpen = (now: Pod | undefined): boolean => !gatesOf(now).includes(keys.gate);
    const left = await cluster.waitFor<Pod>(podPath('held'), isOpen);
    t.same(gatesOf(left), ['x.example/theirs']);
  });

  await t.test(
    'after maxGateDuration a pod with an unknown image gets the fallback architecture and an event',
    async (t) => {
      const image = images.push('there', ['arm64']).replace('/there:', '/never:');
      await create('never', image);
      t.equal(await nodeOf(cluster, 'never'), 's390x-0');
      const events = await cluster.watch<EventNow>('/api/v1/namespaces/default/events', t);
      t.match((await waitForEvent(events, 'ImageUnknown', ['Pod', /^never$/])).message, 'not-found');
      t.ok((await metricOf(controller, 'archwright_gate_decisions_total', { outcome: 'fallback' })) >= 1);
    },
  );

  await t.test('a gated pod that opts out is ungated at once', async (t) => {
    const image = images.push('out', ['arm64']).replace('/out:', '/out-never:');
    await create('out', image);
    const body = { metadata: { labels: { 'arch.example/placement': 'disabled' } } };
    await cluster.merge(podPath('out'), body);
    t.ok(await nodeOf(cluster, 'out'));
  });
});
