import t, { type Test } from 'tap';
import { watchBrokenImages } from '../../../../src/cluster/config-map.ts';
import { execFormat } from '../../../../src/controller/features/exec-format/exec-format.ts';
import { createKubeClient } from '../../../../src/kube/api/client.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import type { KubeStore } from '../../../support/kube-store.ts';
import { failed, facts } from '../../../support/placement-input.ts';
import {
  leadThroughout,
  factsByImage,
  startLeader as startAny,
  type TestLeader,
  type TestLeaderOptions,
} from '../../leader.ts';
import { controllerRef, dataAt, podPath, putPod, putReplicaSet, type PodOptions } from '../../objects.ts';
import type { FactsOfPod } from '../../../../src/cluster/facts-of-pod.ts';
import type { ImageFacts } from '../../../../src/images/facts/facts.ts';
import { until } from '../../../support/until.ts';
import { like } from '../../../support/like.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const notesPath = '/api/v1/namespaces/archwright/configmaps/archwright-broken-images';
const log = 'exec /app: exec format error\n';

/** A crashing pod. @param message its termination message */
function putCrashing(store: KubeStore, name: string, message?: string, more: PodOptions = {}): void {
  putPod(store, name, {
    owner: controllerRef('ReplicaSet', 'web', { uid: 'rs' }),
    image: 'shop/web:1',
    imageID: `registry.example/shop/web@${digest}`,
    ready: false,
    status: {
      restartCount: 3,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { reason: 'Error', exitCode: 255, ...(message && { message }) } },
    },
    ...more,
  });
}

/** Adds a crashing pod with an exec format error in its log. */
function crash(store: KubeStore, name: string, namespace?: string): void {
  store.log(podPath(name, namespace), () => log);
  putCrashing(store, name, undefined, { ...(namespace && { namespace }) });
}

const factsBy =
  (factsOf: (image: string) => ImageFacts | undefined): FactsOfPod =>
  ({ uses }) =>
    Promise.resolve(factsByImage(uses, factsOf));

/** Every manifest claims arm64, the architecture of the node. */
function startLeader(t: Test, options: TestLeaderOptions = {}): Promise<TestLeader> {
  return startAny(t, { factsOfPod: factsBy((image) => facts('arm64', { image, digest })), ...options });
}

async function start(t: Test, options: TestLeaderOptions = {}): Promise<TestLeader> {
  const test = await startLeader(t, options);
  addNode(test);
  await test.settled();
  leadThroughout(t, execFormat, test);
  return test;
}

function addNode({ store }: TestLeader): void {
  store.put('/api/v1/nodes/n1', { status: { nodeInfo: { architecture: 'arm64' } } });
}

const dataOf = (store: KubeStore) => dataAt(store, notesPath);

const noted = (store: KubeStore): Promise<void> =>
  store.until(() => store.get(notesPath) !== undefined, 'a note');
const keyOf = (suffix: string): string => `sha256-${'a'.repeat(64)}.${suffix}`;

t.test('an exec format error in a log leads to a note, events on pod and owner, and a metric', async (t) => {
  const test = await start(t);
  const { store } = test;
  store.log(podPath('web-1'), (query) =>
    query.get('previous') === 'true' && query.get('container') === 'app' ? log : undefined,
  );
  putCrashing(store, 'web-1');
  await noted(store);
  like(t, store.get(notesPath), {
    metadata: { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } },
    data: { [keyOf('arm64')]: /"image":"shop\/web:1","namespaces":\["shop"\]/ },
  });
  await store.until(() => test.events.length === 2, 'the events');
  const shown = (): Promise<number | undefined> => test.series('archwright_broken_images');
  await until(async () => (await shown()) === 1, 'the metric');
  like(t, test.events, [
    { type: 'Warning', reason: 'ExecFormatError', about: { kind: 'Pod', name: 'web-1' }, message: /arm64/ },
    { about: { kind: 'ReplicaSet', name: 'web', uid: 'rs' } },
  ]);
  t.equal(await test.series('archwright_exec_format_errors_total{architecture="arm64"}'), 1);

  const { clock, log: given } = test.leader;
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  const named = { namespace: 'archwright', name: 'archwright-broken-images' };
  const broken = watchBrokenImages({ client, ...named, clock, log: given });
  t.teardown(() => broken.close());
  await store.until(() => broken.size === 1, 'a reader of the notes');
  t.strictSame(broken.brokenOn(digest, 'shop'), ['arm64']);
  t.strictSame(broken.brokenOn(digest, 'bank'), [], 'no effect on other namespaces');
});

t.test('attack: forged messages of one namespace are limited, and do not delay other notes', async (t) => {
  const { store } = await start(t);
  for (let index = 0; index < 200; index += 1) {
    const imageID = `registry.example/shop/web@sha256:${'b'.repeat(60)}${String(index).padStart(4, '0')}`;
    putCrashing(store, `web-${index}`, log, { namespace: 'attacker', imageID });
  }
  putCrashing(store, 'web', log);
  const ofNamespace = (name: string): number =>
    Object.values(dataOf(store)).filter((note) => note.includes(name)).length;
  await store.until(() => ofNamespace('"shop"') === 1 && ofNamespace('attacker') >= 5, 'notes of both');
  t.ok(ofNamespace('attacker') <= 10);
});

t.test(
  'another log text is no evidence and read once; an unreadable or empty log is read again',
  async (t) => {
    const test = await start(t);
    const { store } = test;
    store.log(podPath('panics'), () => 'panic: out of luck\n');
    store.log(podPath('restarted'), () => '');
    for (const name of ['panics', 'restarted', 'web']) putCrashing(store, name);
    await store.until(() => store.received(/\/log$/).length === 3, 'the logs');
    await store.quiet();
    t.strictSame(test.events, []);
    for (const name of ['panics', 'restarted', 'web']) {
      if (name !== 'panics') store.log(podPath(name), () => log);
      putCrashing(store, name, undefined, { labels: { touched: 'yes' } });
    }
    await store.until(() => test.events.length >= 3, 'the events');
    t.strictSame(
      test.events.filter(({ about }) => about.kind === 'Pod').map(({ about }) => about.name),
      ['restarted', 'web'],
    );
    t.equal(store.received(/panics\/log$/).length, 1);
  },
);

t.test('a missing permission to read logs is logged once', async (t) => {
  const test = await start(t);
  const { store } = test;
  store.fault(/\/log$/, { status: 403 });
  for (const name of ['a', 'b', 'c']) putCrashing(store, name);
  await store.until(() => store.received(/\/log$/).length === 3, 'the logs');
  await store.quiet();
  t.equal(test.lines.filter((line) => line.includes('no permission to read pod logs')).length, 1);
  t.strictSame(store.writes(), []);
});

t.test('logs of skipped pods are not read', async (t) => {
  const { store } = await start(t, { configuration: { excludedNamespaces: ['bank'] } });
  crash(store, 'teller', 'bank');
  crash(store, 'web');
  await noted(store);
  await store.quiet();
  t.strictSame(
    store.received(/\/log$/).map(({ path }) => path),
    [`${podPath('web')}/log`],
  );
});

t.test('the setting switches it off, and on again', async (t) => {
  const test = await start(t, { configuration: { execFormatErrorMonitor: false } });
  const { store, configure } = test;
  putCrashing(store, 'web', log);
  await test.settled();
  await store.quiet();
  t.equal(store.get(notesPath), undefined);
  configure({ execFormatErrorMonitor: true });
  putCrashing(store, 'web-2', log);
  await noted(store);
});

t.test('the next leader removes expired notes and continues', async (t) => {
  const first = await startLeader(t);
  addNode(first);
  const { store } = first;
  const old = { image: 'x', namespaces: ['shop'], until: '2020-01-01T00:00:00.000Z' };
  store.put(notesPath, {
    data: { [`sha256-${'b'.repeat(64)}.amd64`]: JSON.stringify(old), readme: 'hand-made' },
  });
  putCrashing(store, 'web', log);
  const next = await startLeader(t, { over: store });
  leadThroughout(t, execFormat, next);
  const added = keyOf('arm64');
  await store.until(() => added in dataOf(store) && Object.keys(dataOf(store)).length === 1, 'both writes');
  like(t, dataOf(store), { [added]: /"namespaces":\["shop"\]/ });
  t.strictSame(Object.keys(dataOf(store)), [added], 'expired and malformed notes are gone');
});

t.test('a pod is checked when its node appears, and forgotten when it is deleted before', async (t) => {
  const clock = createFakeClock();
  const test = await startLeader(t, { clock });
  const { store } = test;
  const { runningPods, nodes } = test.leader.caches;
  leadThroughout(t, execFormat, test);
  putCrashing(store, 'web', log);
  putCrashing(store, 'lost', log, { node: 'gone' });
  await store.until(() => runningPods.size === 2, 'the pods');
  await clock.advance(1_000);
  addNode(test);
  store.remove(podPath('lost'));
  await store.until(() => nodes.size === 1 && runningPods.size === 1, 'the node, and the end of the pod');
  await clock.advance(1_000);
  await noted(store);
  t.equal(clock.pending, 1, 'only the timer of the next cleanup is left');
});

/** The events about a pod with an exec format error in its termination message. */
async function eventsOf(t: Test, options: TestLeaderOptions, more: object = {}) {
  const test = await start(t, options);
  putReplicaSet(test.store, 'web', controllerRef('Deployment', 'web', { uid: 'd' }), { uid: 'rs' });
  putCrashing(test.store, 'web-1', log, { spec: more });
  await test.store.until(() => test.events.length === 2, 'the events');
  const about = { kind: 'Deployment', namespace: 'shop', name: 'web' };
  like(t, test.events, [
    { type: 'Warning', reason: 'ExecFormatError', about: { kind: 'Pod', name: 'web-1' } },
    { type: 'Warning', reason: 'ExecFormatError', about },
  ]);
  t.equal(test.events[1]?.message, `Pod web-1: ${test.events[0]?.message}`);
  return { ...test, message: test.events[0]?.message ?? '' };
}

t.test('the Deployment gets one event for all of its pods', async (t) => {
  const { store, message, events } = await eventsOf(t, {});
  t.match(
    message,
    /^Container app: a binary of shop\/web:1 is not for arm64, .* although its manifest names it\./,
  );
  putCrashing(store, 'web-2', log);
  await store.until(() => events.length === 3, 'the event of the other pod');
  like(t, events[2], { about: { kind: 'Pod', name: 'web-2' } });
});

t.test('an image without the architecture of the node is not noted as broken', async (t) => {
  const factsOfPod = factsBy((image) => facts('amd64 s390x', { image, digest }));
  const chosen = await eventsOf(t, { factsOfPod }, { nodeSelector: { 'kubernetes.io/arch': 'arm64' } });
  t.equal(
    chosen.message,
    'Container app: shop/web:1 has amd64, s390x, so it cannot run on node n1 (arm64). The pod chose that node by its node ' +
      'selector or affinity: change these, or use an image for arm64.',
  );
  t.equal(chosen.store.get(notesPath), undefined, 'it is not noted as broken');
  t.equal(await chosen.series('archwright_exec_format_errors_total{architecture="arm64"}'), 1);
  const other = await eventsOf(t, { factsOfPod });
  t.match(other.message, /has amd64, s390x, so it cannot run on node n1 \(arm64\)\. Create the pod again/);
  t.equal(other.store.get(notesPath), undefined);
  const windows = await eventsOf(t, {
    factsOfPod: factsBy((image) => facts('windows/amd64', { image, digest })),
  });
  t.match(windows.message, /shop\/web:1 has no platform for linux, so it cannot run on node n1/);
});

t.test('the pulled image counts, not the current image of the tag', async (t) => {
  const pulled = `registry.example/shop/web@${digest}`;
  const later = facts('amd64', { digest: `sha256:${'b'.repeat(64)}` });
  const byDigest = factsBy((image) => (image === pulled ? facts('arm64', { digest }) : later));
  await eventsOf(t, { factsOfPod: byDigest });
  const byTag = factsBy((image) => (image === pulled ? failed('unauthorized') : facts('amd64', { digest })));
  t.match((await eventsOf(t, { factsOfPod: byTag })).message, /has amd64, so it cannot run/);
});

t.test('an unknown manifest leads to an event, without a note', async (t) => {
  for (const factsOf of [() => undefined, () => failed('unauthorized')]) {
    const { message, store } = await eventsOf(t, { factsOfPod: factsBy(factsOf) });
    t.match(
      message,
      /a binary of shop\/web:1 is not for arm64.*Its manifest is not known now, so nothing is recorded/,
    );
    t.equal(store.get(notesPath), undefined);
  }
});

t.test('CRI-O reports the manifest of a platform: the index of the tag is noted too', async (t) => {
  const index = `sha256:${'b'.repeat(64)}`;
  const criO = (architecture: string) => ({
    status: { nodeInfo: { architecture, containerRuntimeVersion: 'cri-o://1.36.3' } },
  });
  const byDigest = factsBy((image) =>
    image.includes('@') ? facts('amd64 arm64', { digest }) : facts('amd64 arm64', { digest: index }),
  );
  for (const [node, message, suffix] of [
    [criO('arm64'), log, 'arm64'],
    [criO('amd64'), linker, 'amd64-v2'],
  ] as const) {
    const test = await startLeader(t, { factsOfPod: byDigest });
    const { store } = test;
    store.put('/api/v1/nodes/n1', node);
    await test.settled();
    leadThroughout(t, execFormat, test);
    putCrashing(store, 'old', message, { scheduledAt: Date.now() - 11 * 60_000 });
    await store.until(() => test.events.some(({ about }) => about.name === 'old'), 'the event');
    t.strictSame(Object.keys(dataOf(store)), [keyOf(suffix)], 'the tag may have moved since');
    putCrashing(store, 'new', message, { scheduledAt: Date.now() - 60_000 });
    const ofIndex = `sha256-${'b'.repeat(64)}.${suffix}`;
    await store.until(() => ofIndex in dataOf(store), 'the note of the index');
    t.strictSame(Object.keys(dataOf(store)).toSorted(), [keyOf(suffix), ofIndex]);
  }
});

t.test('an image that is noted already stays noted', async (t) => {
  const factsOfPod = factsBy((image) => facts('amd64', { image, digest, brokenOn: ['arm64'] }));
  const { store, message } = await eventsOf(t, { factsOfPod });
  t.match(message, /although its manifest names it/);
  await noted(store);
});

const linker = '/app: CPU ISA level is lower than required\n';
const v2Node = { metadata: { labels: { 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V2': 'true' } } };

async function startOnAmd64(t: Test, node: object = v2Node): Promise<TestLeader> {
  const test = await startLeader(t, {
    factsOfPod: factsBy((image) => facts('amd64', { image, digest })),
  });
  test.store.put('/api/v1/nodes/n1', { ...node, status: { nodeInfo: { architecture: 'amd64' } } });
  await test.settled();
  leadThroughout(t, execFormat, test);
  return test;
}

t.test('a CPU below the level leads to a note, events on pod and owner, and a metric', async (t) => {
  const test = await startOnAmd64(t);
  const { store } = test;
  store.log(podPath('web-1'), () => `starting\n${linker}`);
  putCrashing(store, 'web-1');
  const key = keyOf('amd64-v3');
  await store.until(() => key in dataOf(store), 'the note');
  t.strictSame(Object.keys(dataOf(store)), [key], 'the image is not noted as broken');
  await store.until(() => test.events.length === 2, 'the events');
  like(t, test.events, [
    {
      type: 'Warning',
      reason: 'CpuLevelTooLow',
      about: { kind: 'Pod', name: 'web-1' },
      message: /shop\/web:1 needs a CPU with x86-64-v3, and node n1 has x86-64-v2\./,
    },
    { reason: 'CpuLevelTooLow', about: { kind: 'ReplicaSet', name: 'web', uid: 'rs' } },
  ]);
  await until(async () => (await test.series('archwright_images_with_cpu_level')) === 1, 'the metric');
  t.equal(await test.series('archwright_broken_images'), 0);
  t.equal(await test.series('archwright_cpu_level_errors_total{level="v3"}'), 1);
  t.match(store.received(/\/log$/)[0]?.query.get('tailLines'), '10');
});

t.test('without a level in the text and of the node, v2 is noted', async (t) => {
  const { store, events } = await startOnAmd64(t, {});
  putCrashing(store, 'web', linker);
  await store.until(() => keyOf('amd64-v2') in dataOf(store) && events.length > 0, 'note and event');
  t.match(events[0]?.message, /needs a CPU with x86-64-v2, and node n1 lacks it\./);
});

t.test('a level is ignored on another architecture, or above the highest level', async (t) => {
  const labels = { 'feature.node.kubernetes.io/cpu-cpuid.X86_64_V4': 'true' };
  const highest = await startOnAmd64(t, { metadata: { labels } });
  const other = await start(t);
  for (const { store, events } of [highest, other]) {
    putCrashing(store, 'web-1', linker);
    await store.quiet();
    t.equal(store.get(notesPath), undefined);
    t.strictSame(events, []);
  }
});
