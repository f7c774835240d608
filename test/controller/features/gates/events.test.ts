/** Events about a gated pod, on the pod and on its workload. */
import t, { type Test } from 'tap';
import type { KubeStore } from '../../../support/kube-store.ts';
import { createFakeClock, type FakeClock } from '../../../support/fake-clock.ts';
import { failed } from '../../../support/placement-input.ts';
import { controllerRef, putReplicaSet } from '../../objects.ts';
import { gated, newStore, startGates } from './support.ts';
import { like } from '../../../support/like.ts';

const minute = 60_000;
const ofReplicaSet = { ownerReferences: [controllerRef('ReplicaSet', 'web-1', { uid: 'rs' })] };
const unauthorized = { private: failed('unauthorized', 'the registry said 401') };

/** A store with the ReplicaSet of the Deployment `web`. */
async function withReplicaSet(t: Test, time: FakeClock): Promise<KubeStore> {
  const store = await newStore(t, time);
  putReplicaSet(store, 'web-1', controllerRef('Deployment', 'web', { uid: 'd' }), { uid: 'rs' });
  return store;
}

t.test('events on the pod and on its Deployment name the image, the reason and the time limit', async (t) => {
  const time = createFakeClock();
  const store = await withReplicaSet(t, time);
  const pod = gated('web-1-a', ['private', 'both'], {}, ofReplicaSet);
  const known = { both: 'amd64 arm64', ...unauthorized };
  const gates = await startGates(t, [pod], { store, time, known });
  await store.until(() => gates.events.length === 2, 'both events');
  const message =
    'Scheduling gated until image platforms are known, at most until 2026-11-01T00:05:00Z: ' +
    'private: unauthorized: the registry requires a valid credential: a pull secret, or a credential or plugin of the nodes (kubeletConfig)';
  like(t, gates.events, [
    {
      type: 'Warning',
      reason: 'Gated',
      message,
      about: { kind: 'Pod', namespace: 'shop', name: 'web-1-a' },
    },
    {
      type: 'Warning',
      reason: 'Gated',
      message: `Pod web-1-a: ${message}`,
      about: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web', uid: 'd' },
    },
  ]);
  await gates.pass(2 * minute);
  t.equal(gates.events.length, 2, 'once');
  const hint = 'pull secret shop/regcerd: there is no such Secret; did you mean regcred?';
  const hinted = failed('unauthorized', 'the registry said 401');
  gates.known = { ...known, private: { ...hinted, error: { code: 'unauthorized', message: '', hint } } };
  await gates.pass(2 * minute);
  t.ok(gates.events[2]?.message.includes(`: private: unauthorized: ${hint} (the registry requires`));
  t.equal(gates.events.splice(2).length, 2, 'a changed reason leads to another event');
  gates.known = { both: 'amd64 arm64', private: failed('not-found') };
  await gates.pass(0.5 * minute);
  like(t, gates.events.slice(2), [
    { reason: 'Gated', message: /: private: not-found: the registry has no such image/u },
    { reason: 'Gated', about: { kind: 'Deployment' } },
  ]);
  await gates.pass(minute);
  like(t, gates.events.slice(4), [
    { reason: 'ImageUnknown', about: { kind: 'Pod' } },
    { reason: 'ImageUnknown', about: { kind: 'Deployment', name: 'web' } },
  ]);
  t.equal(store.received(/^GET .*replicasets/u).length, 1, 'the owner is read once');
});

t.test('a pod whose images are known within two seconds needs no event', async (t) => {
  const gates = await startGates(t, [gated('web', ['later'])]);
  await gates.pass(1500);
  gates.known = { later: 'arm64' };
  gates.answer();
  await gates.opened(1);
  t.strictSame(gates.events, []);

  const slow = await startGates(t, [gated('web', ['later'])]);
  await slow.pass(3000);
  like(t, slow.events, [{ type: 'Normal', reason: 'Gated', message: /: later: not inspected yet$/u }]);
  await slow.pass(5000);
  t.equal(slow.events.length, 1);
});

t.test('pods with the same problem share an event on their workload; their own are spread out', async (t) => {
  const time = createFakeClock();
  const store = await withReplicaSet(t, time);
  const pods = Array.from({ length: 200 }, (_, index) =>
    gated(`web-${index}`, ['private'], {}, ofReplicaSet),
  );
  const gates = await startGates(t, pods, { store, time, known: unauthorized });
  const about = (kind: string): number => gates.events.filter((event) => event.about.kind === kind).length;
  await store.until(() => about('Deployment') > 0, 'the event of the workload');
  t.equal(about('Pod'), 50);
  await gates.pass(minute);
  t.equal(about('Pod'), 200, 'in the end, one event per pod');
  t.equal(about('Deployment'), 1);
});

t.test('if the owner cannot be read, it gets the event instead of the workload', async (t) => {
  for (const status of [403, 404, 500]) {
    const time = createFakeClock();
    const store = await withReplicaSet(t, time);
    store.fault(/^GET .*replicasets/u, { status });
    const pod = gated('web', ['private'], {}, ofReplicaSet);
    const gates = await startGates(t, [pod], { store, time, known: unauthorized });
    await store.until(() => gates.events.length === 2, `the events, ${status}`);
    like(t, gates.events[1], { reason: 'Gated', about: { kind: 'ReplicaSet', name: 'web-1', uid: 'rs' } });
  }
});
