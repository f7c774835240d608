/** When gates are removed: known images, unknown images, the time limit, pods that change or disappear. */
import t from 'tap';
import { failed, requiring } from '../../../support/placement-input.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { archIn, createdAt, gated, newStore, path, startGates, termsOf, theirs } from './support.ts';
import { like } from '../../../support/like.ts';

const minute = 60_000;
const nothingInCommon = 'no architecture can run all images: arm has arm64; intel has amd64';

t.test('a known image: one patch adds the placement and removes our gate', async (t) => {
  const gates = await startGates(t, [gated('web', ['both'])], { known: { both: 'amd64 arm64' } });
  await gates.opened(1);
  const pod = gates.pod('web');
  t.strictSame(termsOf(pod), [archIn('amd64', 'arm64')]);
  t.strictSame(pod.spec.schedulingGates, [theirs], "other controllers' gates stay");
  t.equal(gates.store.writes().length, 1);
  const guard = { op: 'replace', path: '/metadata/resourceVersion', value: /^\d+$/u };
  const operations = gates.store.writes()[0]?.json as readonly unknown[];
  like(t, operations[0], guard, 'guarded by the resourceVersion that was decided upon');
  t.equal(gates.lookups.length, 0);
  t.strictSame(gates.events, []);
  t.equal(await gates.series('archwright_gate_decisions_total{outcome="placed"}'), 1);
  t.equal(await gates.series('archwright_gated_duration_seconds_count'), 1);
});

t.test('an unknown image: one lookup decides all of its pods', async (t) => {
  const pods = Array.from({ length: 30 }, (_, index) => gated(`web-${index}`, ['later']));
  const gates = await startGates(t, pods);
  await gates.store.until(() => gates.open === 1);
  t.equal(gates.isGated('web-0'), true);
  await gates.pass(500);
  t.equal(await gates.series('archwright_gated_pods{age="10s",reason="lookup"}'), 30);
  gates.known = { later: 'arm64' };
  gates.answer();
  await gates.opened(30);
  t.equal(gates.lookups.length, 1);
  t.strictSame(termsOf(gates.pod('web-29')), [archIn('arm64')]);
  t.equal(gates.store.writes().length, 30);
  t.equal(await gates.series('archwright_gated_pods{age="10s",reason="lookup"}'), 0);
});

t.test('an unknown image: the fallback and an event after maxGateDuration', async (t) => {
  const gates = await startGates(t, [gated('web', ['broken', 'both'])], {
    known: { both: 'amd64 arm64', broken: failed('unauthorized', 'the registry said 401') },
    configuration: { fallbackArchitecture: 'amd64' },
  });
  await gates.pass(4.9 * minute);
  t.equal(gates.isGated('web'), true);
  t.equal(gates.store.writes().length, 0, 'no write before the time limit');
  t.equal(await gates.series('archwright_gated_pods{age="5m",reason="unauthorized"}'), 1);
  await gates.pass(0.2 * minute);
  await gates.opened(1);
  t.strictSame(termsOf(gates.pod('web')), [archIn('amd64')]);
  like(t, gates.events, [
    { reason: 'Gated' },
    {
      type: 'Warning',
      reason: 'ImageUnknown',
      message:
        /^Image platforms still unknown after 300 s; falling back to amd64: broken: unauthorized: the registry requires a valid credential: a pull secret, or a credential or plugin of the nodes \(kubeletConfig\)$/u,
      about: { kind: 'Pod', namespace: 'shop', name: 'web', uid: 'uid-web' },
    },
  ]);
  t.equal(gates.events.length, 2);
  t.equal(await gates.series('archwright_gate_decisions_total{outcome="fallback"}'), 1);
});

t.test('a failed lookup is repeated as soon as the failure allows it', async (t) => {
  const limited = failed('rate-limited');
  const error = { ...limited.error, code: 'rate-limited', message: '', retryAfterMs: 9000 } as const;
  const gates = await startGates(t, [gated('web', ['busy'])], { known: { busy: { ...limited, error } } });
  await gates.pass(8500);
  t.equal(gates.lookups.length, 1, 'attempts in between find the failure in the cache');
  gates.known = { busy: 'arm64' };
  await gates.pass(2000);
  await gates.opened(1);
  t.equal(gates.lookups.length, 2);
});

t.test('the time limit counts from creation, also under a new leader', async (t) => {
  const time = createFakeClock();
  const store = await newStore(t, time);
  const first = await startGates(t, [gated('web', ['never'])], { store, time });
  await first.pass(4 * minute);
  first.depose();
  await first.ended;
  const second = await startGates(t, [], { store, time });
  await second.pass(0.9 * minute);
  t.equal(second.isGated('web'), true);
  await second.pass(0.2 * minute);
  await store.until(() => !second.isGated('web'));
  t.equal(store.writes().length, 1);
});

t.test('a change of the wall clock does not matter', async (t) => {
  for (const [name, to] of [
    ['forward', createdAt + 10 * 365 * 24 * 60 * minute],
    ['back', 0],
  ] as const) {
    const gates = await startGates(t, [gated('web', ['never'])]);
    await gates.store.until(() => gates.open === 1);
    gates.time.setWall(to);
    await gates.pass(4.9 * minute);
    t.equal(gates.isGated('web'), true, name);
    await gates.pass(0.2 * minute);
    await gates.opened(1);
  }
});

t.test('an absent, unreadable or future creation time counts as now', async (t) => {
  const times = [undefined, 'yesterday', '2030-01-01T00:00:00Z'];
  const pods = times.map((creationTimestamp, index) =>
    gated(`p${index}`, ['never'], {}, { creationTimestamp }),
  );
  const gates = await startGates(t, pods);
  await gates.pass(4.9 * minute);
  const areGated = (): boolean[] => times.map((_, index) => gates.isGated(`p${index}`));
  t.strictSame(areGated(), [true, true, true]);
  await gates.pass(0.3 * minute);
  await gates.store.until(() => !areGated().includes(true));
});

t.test('a changed `maxGateDuration` applies to waiting pods', async (t) => {
  const configuration = { maxGateDuration: 60 * minute };
  const gates = await startGates(t, [gated('web', ['never'])], { configuration });
  await gates.pass(10 * minute);
  t.equal(gates.isGated('web'), true);
  gates.configure({ maxGateDuration: minute });
  await gates.pass(0.5 * minute);
  await gates.opened(1);
});

t.test('a gated pod without a common architecture pends, even under `deny`', async (t) => {
  const known = { arm: 'arm64', intel: 'amd64' };
  const gates = await startGates(t, [gated('web', ['arm', 'intel'])], { known });
  await gates.opened(1);
  t.strictSame(termsOf(gates.pod('web')), [archIn('no-common-architecture')]);
  await gates.store.until(() => gates.events.length > 0);
  like(t, gates.events, [{ reason: 'NoCommonArchitecture', message: nothingInCommon }]);
  await gates.pass(minute);
  t.equal(gates.events.length, 1, 'once');

  const allowed = await startGates(t, [gated('web', ['arm', 'intel'])], {
    known,
    configuration: { onNoCommonArchitecture: 'allow' },
  });
  await allowed.opened(1);
  t.equal(termsOf(allowed.pod('web')), undefined);
});

t.test('a pod that pends since admission gets one event', async (t) => {
  const images = Object.entries({ arm: 'arm64', intel: 'amd64' });
  const record = { v: 1, outcome: 'pending', imagesKey: 'x', added: {}, images };
  const annotations = { 'arch.example/decision': JSON.stringify(record) };
  const pod = gated('web', ['arm', 'intel'], { schedulingGates: [] }, { annotations });
  const gates = await startGates(t, [pod]);
  await gates.store.until(() => gates.events.length > 0);
  like(t, gates.events, [{ reason: 'NoCommonArchitecture', message: nothingInCommon }]);
  gates.store.put(path('web'), { ...pod, status: { phase: 'Pending' } });
  await gates.pass(minute);
  t.equal(gates.events.length, 1);
  t.equal(gates.store.writes().length, 0);
});

t.test('a pod that is skipped by a new policy loses the gate at its next attempt', async (t) => {
  const gates = await startGates(
    t,
    [
      gated('label', ['never'], {}, { labels: { 'arch.example/placement': 'disabled' } }),
      gated('later', ['never']),
      gated('space', ['never'], {}, { namespace: 'kube-system' }),
    ],
    { configuration: { excludedNamespaces: ['kube-system'] } },
  );
  gates.store.put('/api/v1/namespaces/kube-system', { metadata: { name: 'kube-system' } });
  await gates.pass(6000);
  await gates.store.until(() => !gates.isGated('label'));
  await gates.store.until(() => {
    const pod = gates.store.get(path('space', 'kube-system')) as { spec?: { schedulingGates?: unknown[] } };
    return pod.spec?.schedulingGates?.length === 1;
  });
  t.equal(gates.isGated('later'), true);
  const labels = { 'arch.example/placement': 'disabled' };
  gates.store.put('/api/v1/namespaces/shop', { metadata: { name: 'shop', labels } });
  await gates.pass(10_000);
  await gates.opened(3);
  t.equal(termsOf(gates.pod('later')), undefined);
  t.equal(await gates.series('archwright_gate_decisions_total{outcome="skipped"}'), 3);
});

t.test('a pod waits for its namespace to appear in the cache, for a bounded time', async (t) => {
  const labels = { 'arch.example/placement': 'disabled' };
  const pods = ['new', 'never-seen'].map((namespace) => gated('web', ['both'], {}, { namespace }));
  const gates = await startGates(t, pods, { known: { both: 'arm64' } });
  await gates.pass(1000);
  t.equal(gates.store.writes().length, 0);
  gates.store.put('/api/v1/namespaces/new', { metadata: { name: 'new', labels } });
  await gates.store.until(() => gates.store.writes().length === 1);
  const inNew = gates.store.get(path('web', 'new')) as never;
  t.equal(termsOf(inNew), undefined, 'the labels of the namespace apply');
  await gates.pass(5000);
  await gates.store.until(() => gates.store.writes().length === 2);
  t.strictSame(termsOf(gates.store.get(path('web', 'never-seen')) as never), [archIn('arm64')]);
});

t.test('a deleted pod is not an error', async (t) => {
  const gates = await startGates(t, [
    gated('web', ['later']),
    gated('going', ['later'], {}, { deletionTimestamp: 'x' }),
  ]);
  await gates.store.until(() => gates.open === 1);
  gates.store.remove(path('web'));
  await gates.pass(500);
  gates.known = { later: 'arm64' };
  gates.answer();
  await gates.pass(10 * minute);
  t.equal(gates.store.writes().length, 1, 'the attempt that was under way');
  t.equal(gates.isGated('going'), true, 'a terminating pod is not changed');
  t.strictSame(gates.events, []);
  for (const reason of ['lookup', 'refused'])
    t.equal(await gates.series(`archwright_gated_pods{age="older",reason="${reason}"}`), 0, reason);
});

t.test('a new pod of the same name has its own time limit', async (t) => {
  const gates = await startGates(t, [gated('db-0', ['never'])]);
  await gates.pass(4 * minute);
  const creationTimestamp = new Date(gates.time.now()).toISOString();
  gates.store.put(path('db-0'), gated('db-0', ['never'], {}, { uid: 'second', creationTimestamp }));
  await gates.pass(2 * minute);
  t.equal(gates.isGated('db-0'), true, 'the time limit of the first pod does not count');
  await gates.pass(3.2 * minute);
  await gates.store.until(() => !gates.isGated('db-0'));
});

t.test('an event reports that the requirement from admission contradicts the current images', async (t) => {
  const added = { terms: [[['kubernetes.io/arch', ['amd64']]]], made: true };
  const record = { v: 1, outcome: 'gated', architectures: ['amd64'], imagesKey: 'x', added };
  const annotations = { 'arch.example/decision': JSON.stringify(record) };
  const pod = gated('web', ['arm'], requiring(archIn('amd64')), { annotations });
  const gates = await startGates(t, [pod], { known: { arm: 'arm64' } });
  await gates.store.until(() => gates.events.length > 0);
  like(t, gates.events, [
    {
      reason: 'NoCommonArchitecture',
      message: /^Created requiring amd64, but its images now run only on arm64.*recreate it$/u,
    },
  ]);
});
