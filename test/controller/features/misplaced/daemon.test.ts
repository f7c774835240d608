/** Pods of DaemonSets on nodes that cannot run them are not evicted. An event says what a person can do. */
import t, { type Test } from 'tap';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import { archIn, facts, isIn, onArch, requiring, termOf } from '../../../support/placement-input.ts';
import { controllerRef } from '../../objects.ts';
import { digest, known, putPod, startWorld, type PodOptions, type World } from './setup.ts';
import { like } from '../../../support/like.ts';

const owner = controllerRef('DaemonSet', 'probe', { uid: 'daemon-uid' });
const path = '/apis/apps/v1/namespaces/shop/daemonsets/probe';
const onItsNode = requiring({ matchFields: [isIn('metadata.name', 'arm-1')] });
const choosing = (...values: string[]): object => requiring(termOf(archIn(...values)));

/** The spec of a pod with two images. */
const both = (image: string): object => ({
  ...onItsNode,
  containers: ['app:1', image].map((each, index) => ({ name: index === 0 ? 'app' : 'b', image: each })),
});

interface Template {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly images?: readonly string[];
  readonly spec?: object;
}

function putDaemonSet(
  { store }: World,
  { labels = {}, annotations = {}, images, spec }: Template,
  uid?: string,
) {
  const containers = (images ?? ['app:1']).map((image, index) => ({ name: `c${index}`, image }));
  const template = { metadata: { labels, annotations }, spec: { containers, ...spec } };
  store.put(path, { metadata: { uid: uid ?? owner.uid }, spec: { template } });
}

const recorded = JSON.stringify({
  v: 1,
  architectures: ['amd64'],
  imagesKey: 'x',
  added: { terms: [[['kubernetes.io/arch', ['amd64']]]], made: true },
});

interface Case {
  readonly template?: Template;
  readonly pod?: PodOptions;
  readonly configuration?: Partial<Configuration>;
  readonly facts?: typeof known;
  readonly before?: (world: World) => void;
}
const disabled = { 'arch.example/placement': 'disabled' };
const template = (spec: object): Case => ({ template: { spec } });

const unplaced =
  /app:1 has amd64\. Its DaemonSet would create .*: kubectl -n shop rollout restart daemonset probe$/;
const withEvent: Readonly<Record<string, readonly [message: RegExp, given: Case]>> = {
  'applied before archwright was installed': [unplaced, {}],
  'the same under event': [unplaced, { configuration: { misplacedPods: 'event' } }],
  'that chooses several architectures': [unplaced, template(choosing('amd64', 'arm64'))],
  'whose images share no architecture': [
    /no architecture has all of its images/,
    {
      template: { images: ['app:1', 'arm:1'] },
      pod: { spec: both('arm:1') },
      facts: { ...known, 'arm:1': facts('arm64', { digest: digest('d') }) },
    },
  ],
};
const withoutEvent: Readonly<Record<string, Case>> = {
  'placed since: its pod is about to be deleted': {
    template: { annotations: { 'arch.example/decision': recorded }, spec: choosing('amd64') },
  },
  'that chooses its architecture': template(choosing('arm64')),
  'with placement disabled': { template: { labels: disabled } },
  'in an excluded namespace': { configuration: { excludedNamespaces: ['shop'] } },
  'that has another image since': { template: { images: ['other:1'] } },
  'with an unknown image': { template: { images: ['app:1', 'other:1'] } },
  'that no longer has the image that cannot run there': {
    template: { images: ['both:1'] },
    pod: { spec: both('both:1') },
  },
  'created again meanwhile': { before: (world) => putDaemonSet(world, {}, 'another') },
  'that is gone': { before: ({ store }) => store.remove(path) },
  'that may not be read': { before: ({ store }) => void store.fault(`GET ${path}`, { status: 403 }) },
};

/** A DaemonSet with one pod, after the reconcile that checks it. */
async function reconciled(t: Test, given: Case): Promise<World> {
  const world = await startWorld(t, {
    configuration: given.configuration,
    ...(given.facts && { facts: given.facts }),
  });
  putDaemonSet(world, given.template ?? {});
  putPod(world.store, 'probe-a', { owner, spec: onItsNode, ...given.pod });
  given.before?.(world);
  await world.afterGrace();
  t.strictSame(world.pods(), ['probe-a']);
  t.strictSame(world.store.writes(), []);
  return world;
}

for (const [name, given] of Object.entries(withoutEvent)) {
  t.test(`a DaemonSet ${name}: no event`, async (t) => {
    t.strictSame((await reconciled(t, given)).events, []);
  });
}

for (const [name, [message, given]] of Object.entries(withEvent)) {
  t.test(`a DaemonSet ${name}: an event`, async (t) => {
    const world = await reconciled(t, given);
    const { controller: _, ...about } = { ...owner, namespace: 'shop' };
    like(t, world.events, [
      { type: 'Warning', reason: 'MisplacedPod', about: { kind: 'Pod', name: 'probe-a' }, message },
      { about },
    ]);
    const { length } = world.events;
    await world.after(20 * 60_000);
    t.equal(world.events.length, length, 'once');
  });
}

t.test('a DaemonSet counts as misplaced, and gets one event for all of its pods', async (t) => {
  const world = await startWorld(t);
  putDaemonSet(world, {});
  for (const name of ['probe-a', 'probe-b']) putPod(world.store, name, { owner, spec: onItsNode });
  await world.afterGrace();
  t.equal(await world.series('archwright_misplaced_pods'), 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="unplaced"}'), 1);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 0);
});

const kruise = { ...owner, apiVersion: 'apps.kruise.example/v1' };
const reported: Readonly<Record<string, PodOptions>> = {
  'a DaemonSet of another API group': { owner: kruise },
  'a controller that pins nodes': { owner: { ...kruise, kind: 'BroadcastJob' } },
};
const notReported: Readonly<Record<string, PodOptions>> = {
  'a controller, with placement disabled': { owner: kruise, labels: disabled },
  'a controller with an architecture in its template': {
    owner: kruise,
    spec: { ...onItsNode, ...onArch('arm64') },
  },
  nobody: { owner: null },
};

for (const [name, pod] of Object.entries({ ...reported, ...notReported })) {
  const isReported = name in reported;
  t.test(`a pinned pod of ${name}: ${isReported ? 'an event' : 'no event'}`, async (t) => {
    const world = await startWorld(t);
    putPod(world.store, 'probe-a', { spec: onItsNode, ...pod });
    await world.afterGrace();
    t.strictSame(world.pods(), ['probe-a']);
    t.strictSame(world.store.writes(), []);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="pinned"}'), isReported ? 1 : 0);
    const message = /app:1 has amd64\. .* chose this node.*kubernetes\.io\/arch In \[amd64\]/;
    const events = [
      { reason: 'MisplacedPod', about: { kind: 'Pod', name: 'probe-a' }, message },
      { about: { name: 'probe', namespace: 'shop' }, message },
    ];
    like(t, world.events, isReported ? events : []);
    t.equal(world.events.length, isReported ? 2 : 0);
  });
}
