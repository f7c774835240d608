/** Pods of DaemonSets on nodes that cannot run them: never evicted, told where a person can do something about it. */
import t from 'tap';
import type { Configuration } from '../../../src/policy/configuration/configuration.ts';
import { facts, requiring } from '../../support/placement-input.ts';
import { digest, known, putPod, startWorld, type PodOptions, type World } from './setup.ts';

const owner = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  name: 'probe',
  uid: 'daemon-uid',
  controller: true,
};
const path = '/apis/apps/v1/namespaces/shop/daemonsets/probe';
const onItsNode = requiring({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['arm-1'] }] });
const choosing = (...values: string[]): object =>
  requiring({ matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values }] });

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
  readonly name: string;
  readonly template?: Template;
  readonly pod?: PodOptions;
  readonly configuration?: Partial<Configuration>;
  readonly facts?: typeof known;
  readonly before?: (world: World) => void;
  readonly event?: RegExp;
}

const unplaced =
  /app:1 has amd64\. Its DaemonSet would create .*: kubectl -n shop rollout restart daemonset probe$/;

const cases: readonly Case[] = [
  { name: 'applied while nobody placed it', event: unplaced },
  { name: 'the same under event', configuration: { misplacedPods: 'event' }, event: unplaced },
  { name: 'the same under off', configuration: { misplacedPods: 'off' } },
  { name: 'whose pod is ready', pod: { ready: true } },
  { name: 'on a node that can run it', pod: { node: 'amd-1' } },
  {
    name: 'placed by now: its pod is about to go',
    template: { annotations: { 'arch.example/decision': recorded }, spec: choosing('amd64') },
  },
  { name: 'that chooses its architecture', template: { spec: choosing('arm64') } },
  {
    name: 'that chooses several architectures',
    template: { spec: choosing('amd64', 'arm64') },
    event: unplaced,
  },
  { name: 'that is to be left alone', template: { labels: { 'arch.example/placement': 'disabled' } } },
  { name: 'in an excluded namespace', configuration: { excludedNamespaces: ['shop'] } },
  {
    name: 'whose images share no architecture',
    template: { images: ['app:1', 'arm:1'] },
    pod: {
      spec: both('arm:1'),
    },
    facts: { ...known, 'arm:1': facts('arm64', { digest: digest('d') }) },
    event: /no architecture has all of its images/,
  },
  { name: 'that has another image by now', template: { images: ['other:1'] } },
  { name: 'of which one image is not known', template: { images: ['app:1', 'other:1'] } },
  {
    name: 'that is without the image that cannot run there by now',
    template: { images: ['both:1'] },
    pod: {
      spec: both('both:1'),
    },
  },
  { name: 'made again meanwhile', before: (world) => putDaemonSet(world, {}, 'another') },
  { name: 'that is gone', before: ({ store }) => store.remove(path) },
  { name: 'that may not be read', before: ({ store }) => void store.fault(`GET ${path}`, { status: 403 }) },
];

for (const { name, template = {}, pod, configuration, facts: given, before, event } of cases) {
  void t.test(`a DaemonSet ${name}: ${event ? 'told' : 'nothing is said'}`, async (t) => {
    const world = await startWorld(t, { configuration, ...(given && { facts: given }) });
    putDaemonSet(world, template);
    putPod(world.store, 'probe-a', { owner, spec: onItsNode, ...pod });
    before?.(world);
    await world.afterGrace();
    t.same(world.pods(), ['probe-a']);
    t.same(world.store.writes(), []);
    if (event === undefined) {
      t.same(world.events, []);
      return;
    }
    t.match(world.events, [
      { type: 'Warning', reason: 'MisplacedPod', about: { kind: 'Pod', name: 'probe-a' }, message: event },
      {
        about: { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'shop', name: 'probe', uid: owner.uid },
      },
    ]);
    const told = world.events.length;
    await world.after(20 * 60_000);
    t.equal(world.events.length, told, 'once');
  });
}

void t.test('it counts as misplaced, and is told once for all of its pods', async (t) => {
  const world = await startWorld(t);
  putDaemonSet(world, {});
  for (const name of ['probe-a', 'probe-b']) putPod(world.store, name, { owner, spec: onItsNode });
  await world.afterGrace();
  t.equal(await world.series('archwright_misplaced_pods'), 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="unplaced"}'), 1);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 0);
});

const kruise = { ...owner, apiVersion: 'apps.kruise.example/v1' };
const others: readonly (PodOptions & { readonly name: string; readonly isReported?: boolean })[] = [
  { name: 'a DaemonSet of another API group', owner: kruise, isReported: true },
  { name: 'a controller that pins nodes', owner: { ...kruise, kind: 'BroadcastJob' }, isReported: true },
  { name: 'a controller, on a node that can run it', owner: kruise, node: 'amd-1' },
  { name: 'a controller, left alone', owner: kruise, labels: { 'arch.example/placement': 'disabled' } },
  {
    name: 'a controller with an architecture in its template',
    owner: kruise,
    spec: { ...onItsNode, nodeSelector: { 'kubernetes.io/arch': 'arm64' } },
  },
  { name: 'nobody', owner: null },
];

for (const { name, isReported, ...pod } of others) {
  void t.test(`a pinned pod of ${name}: ${isReported ? 'reported' : 'nothing is said'}`, async (t) => {
    const world = await startWorld(t);
    putPod(world.store, 'probe-a', { spec: onItsNode, ...pod });
    await world.afterGrace();
    t.same(world.pods(), ['probe-a']);
    t.same(world.store.writes(), []);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="pinned"}'), isReported ? 1 : 0);
    const message = /app:1 has amd64\. .* chose this node.*kubernetes\.io\/arch In \[amd64\]/;
    const events = [
      { reason: 'MisplacedPod', about: { kind: 'Pod', name: 'probe-a' }, message },
      { about: { name: 'probe', namespace: 'shop' }, message },
    ];
    t.match(world.events, isReported ? events : []);
    t.equal(world.events.length, isReported ? 2 : 0);
  });
}
