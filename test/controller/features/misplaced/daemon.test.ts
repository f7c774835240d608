/** Pods of DaemonSets on nodes that cannot run them are not evicted. An event says what a person can do. */
import t from 'tap';
import { isIn, onArch, requiring } from '../../../support/placement-input.ts';
import { controllerRef } from '../../objects.ts';
import { putPod, startWorld, type PodOptions, type World } from './setup.ts';
import { like } from '../../../support/like.ts';

const owner = controllerRef('DaemonSet', 'probe', { uid: 'daemon-uid' });
const path = '/apis/apps/v1/namespaces/shop/daemonsets/probe';
const spec = requiring({ matchFields: [isIn('metadata.name', 'arm-1')] });

function putDaemonSet({ store }: World, uid = owner.uid): void {
  const template = { spec: { containers: [{ name: 'app', image: 'app:1' }] } };
  store.put(path, { metadata: { uid }, spec: { template } });
}

for (const misplacedPods of ['evict', 'event'] as const)
  t.test(`a DaemonSet gets one event for all of its pods, under ${misplacedPods}`, async (t) => {
    const world = await startWorld(t, { configuration: { misplacedPods } });
    putDaemonSet(world);
    for (const name of ['probe-a', 'probe-b']) putPod(world.store, name, { owner, spec });
    await world.afterGrace();
    await world.after(20 * 60_000);
    t.strictSame(world.store.writes(), []);
    const { controller: _, ...about } = { ...owner, namespace: 'shop' };
    const message =
      /app:1 has amd64\. Its DaemonSet would create .*: kubectl -n shop rollout restart daemonset probe$/;
    like(t, world.events, [
      { type: 'Warning', reason: 'MisplacedPod', about: { kind: 'Pod', name: /^probe-[ab]$/ }, message },
      { about },
    ]);
    t.equal(await world.series('archwright_misplaced_pods'), 2);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="unplaced"}'), 1);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 0);
  });

const unread: Readonly<Record<string, (world: World) => void>> = {
  'was created again meanwhile': (world) => putDaemonSet(world, 'another'),
  'is gone': () => undefined,
  'may not be read': (world) => {
    putDaemonSet(world);
    world.store.fault(`GET ${path}`, { status: 403 });
  },
};
for (const [what, before] of Object.entries(unread))
  t.test(`a DaemonSet that ${what}: no event`, async (t) => {
    const world = await startWorld(t);
    before(world);
    putPod(world.store, 'probe-a', { owner, spec });
    await world.afterGrace();
    t.strictSame(world.store.writes(), []);
    t.strictSame(world.events, []);
  });

const kruise = { ...owner, apiVersion: 'apps.kruise.example/v1' };
const pinned: readonly (readonly [by: string, pod: PodOptions, isReported: boolean])[] = [
  ['a DaemonSet of another API group', { owner: kruise }, true],
  ['a controller that pins nodes', { owner: { ...kruise, kind: 'BroadcastJob' } }, true],
  [
    'a controller, with placement disabled',
    { owner: kruise, labels: { 'arch.example/placement': 'disabled' } },
    false,
  ],
  [
    'a controller with an architecture in its template',
    { owner: kruise, spec: { ...spec, ...onArch('arm64') } },
    false,
  ],
  ['nobody', { owner: null }, false],
];

for (const [by, pod, isReported] of pinned)
  t.test(`a pinned pod of ${by}: ${isReported ? 'an event' : 'no event'}`, async (t) => {
    const world = await startWorld(t);
    putPod(world.store, 'probe-a', { spec, ...pod });
    await world.afterGrace();
    t.strictSame(world.store.writes(), []);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="pinned"}'), isReported ? 1 : 0);
    const message = /app:1 has amd64\. .* chose this node.*kubernetes\.io\/arch In \[amd64\]/;
    const events = [
      { reason: 'MisplacedPod', about: { kind: 'Pod', name: 'probe-a' }, message },
      { about: { name: 'probe', namespace: 'shop' }, message },
    ];
    like(t, world.events, isReported ? events : []);
  });
