import { hostname } from 'node:os';
import t, { type Test } from 'tap';
import { EventRecorder, type ObjectReference } from '../../../src/kube/events/events.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { connectedStore } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { silentLog } from '../../support/captured.ts';
import { like } from '../../support/like.ts';

const collection = '/api/v1/namespaces/team/events';
const serverStart = Date.parse('2030-05-05T05:05:05Z');

interface Event {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly count: number;
  readonly message: string;
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
}

async function start(t: Test) {
  const time = createFakeClock();
  const begin = time.monotonic();
  const now = (): number => serverStart + time.monotonic() - begin;
  const { store, client } = await connectedStore(t, { now, clock: time });
  const metrics = createMetrics();
  const log = silentLog;
  const recorder = new EventRecorder({ client, clock: time, log, metrics });
  t.teardown(() => recorder.flush(AbortSignal.abort(new Error('end of the test'))));
  await client.get('/api/v1/nodes', { signal: neverAborted });
  return {
    store,
    time,
    recorder,
    events: (path = collection) => store.list(path) as unknown as Event[],
    /** Advances the clock until all events are written or dropped. */
    written: async () => {
      const end = { isThere: false };
      void recorder.flush(neverAborted).then(() => (end.isThere = true));
      for (let i = 0; i < 500 && !end.isThere; i++) {
        await store.quiet();
        if (!end.isThere) await time.advance(500);
      }
      t.ok(end.isThere, 'all events are written or dropped');
    },
    outcomes: async () => {
      const page = await metrics.render();
      const found = page.matchAll(/^archwright_events_total\{outcome="(\w+)"\} ([1-9]\d*)$/gm);
      return Object.fromEntries(Array.from(found, ([, name, n]) => [name, Number(n)])) as object;
    },
  };
}

function pod(name: string, more: Partial<ObjectReference> = {}): ObjectReference {
  return { apiVersion: 'v1', kind: 'Pod', namespace: 'team', name, uid: `uid-of-${name}`, ...more };
}

const decided = { type: 'Normal', reason: 'ArchitectureDecided', message: 'arm64 only' } as const;

void t.test('an event has the fields that kubectl describe uses', async (t) => {
  const { recorder, events, written, time, store } = await start(t);
  await time.advance(61_000);
  recorder.record(pod('web-0'), decided);
  t.equal(store.writes().length, 0, 'written in the background');
  await written();
  like(t, events(), [
    {
      kind: 'Event',
      metadata: { name: /^web-0\.[0-9a-f]{16}$/, namespace: 'team' },
      involvedObject: pod('web-0'),
      type: 'Normal',
      reason: 'ArchitectureDecided',
      message: 'arm64 only',
      source: { component: 'archwright-controller' },
      reportingComponent: 'archwright-controller',
      reportingInstance: hostname(),
      firstTimestamp: '2030-05-05T05:06:06Z',
      lastTimestamp: '2030-05-05T05:06:06Z',
      count: 1,
    },
  ]);
});

void t.test('a repeated event increases its count, and starts at 1 after it was deleted', async (t) => {
  const { recorder, events, written, time, store, outcomes } = await start(t);
  for (let i = 0; i < 3; i++) recorder.record(pod('a'), decided);
  await written();
  like(t, events(), [{ count: 3 }]);
  t.equal(store.writes().length, 1);
  await time.advance(60_000);
  recorder.record(pod('a'), decided);
  recorder.record(pod('b'), decided);
  await written();
  like(t, events(), [{ count: 4, lastTimestamp: '2030-05-05T05:06:05Z' }, { count: 1 }]);
  t.strictSame(await outcomes(), { written: 2, counted: 1 });
  store.remove(`${collection}/${events()[0]?.metadata.name}`);
  recorder.record(pod('a'), decided);
  await written();
  t.strictSame(
    events().map((event) => event.count),
    [1, 1],
  );
});

void t.test('events differ by object, reason and message', async (t) => {
  const { recorder, events, written } = await start(t);
  for (let round = 0; round < 2; round++) {
    recorder.record(pod('a'), decided);
    recorder.record(pod('b'), decided);
    recorder.record(pod('a', { uid: 'of another' }), decided);
    recorder.record(pod('a'), { ...decided, message: 'another' });
    recorder.record(pod('a'), { ...decided, reason: 'Another' });
    recorder.record(pod('a'), { ...decided, type: 'Warning' });
    await written();
  }
  t.strictSame(
    events().map(({ count }) => count),
    [2, 2, 2, 2, 2, 2],
  );
});

void t.test('an object has a burst of 25 events, then one every five minutes', async (t) => {
  const { recorder, written, time, outcomes, store } = await start(t);
  for (let i = 0; i < 40; i++) recorder.record(pod('noisy'), { ...decided, reason: `Reason${i}` });
  recorder.record(pod('quiet'), decided);
  await written();
  t.strictSame(await outcomes(), { written: 26, limited: 15 });
  await time.advance(299_000 - 20_000);
  recorder.record(pod('noisy'), decided);
  await time.advance(21_000);
  recorder.record(pod('noisy'), decided);
  recorder.record(pod('noisy'), decided);
  await written();
  t.strictSame(await outcomes(), { written: 27, limited: 17 });
  t.equal(store.writes().length, 27);
});

void t.test(
  'events of cluster-scoped objects go to default; names and messages are truncated, secrets removed',
  async (t) => {
    const { recorder, events, written } = await start(t);
    recorder.record({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, decided);
    recorder.record(
      { apiVersion: 'x/v1', kind: 'X', namespace: 'team', name: `System:${'a'.repeat(250)}` },
      decided,
    );
    const token = 'a-very-secret-token';
    secret(token);
    const message = `${token} ${'é'.repeat(1000)}`;
    recorder.record(pod('p'), { ...decided, message });
    await written();
    like(t, events('/api/v1/namespaces/default/events'), [
      { metadata: { name: /^n1\./ }, involvedObject: { kind: 'Node', name: 'n1' } },
    ]);
    const names = events().map((event) => event.metadata.name);
    like(t, names.sort(), [/^p\./, /^ystem-a{193}\.[0-9a-f]{16}$/]);
    const cut = events().find((event) => event.message.startsWith('[secret]'))?.message ?? '';
    t.ok(Buffer.byteLength(cut) <= 1024 && Buffer.byteLength(cut) > 1015);
    t.match(cut, /é…$/);
    t.notMatch(JSON.stringify(events()), token);
  },
);

void t.test('failed writes are retried with Retry-After, and dropped after four tries', async (t) => {
  const { recorder, events, written, store, time, outcomes } = await start(t);
  store.fault(/^POST/, { status: 429, retryAfter: 20, times: 1 });
  recorder.record(pod('a'), decided);
  await store.quiet();
  await time.advance(19_000);
  await store.quiet();
  t.strictSame(events(), []);
  await time.advance(1_000);
  await written();
  t.equal(events().length, 1);
  const end = store.fault(/^(?:POST|PATCH)/, { status: 503 });
  recorder.record(pod('b'), decided);
  await written();
  t.equal(store.received(/^POST/).length, 2 + 4, 'four tries');
  end();
  store.fault(/^POST/, { lost: true, times: 1 });
  recorder.record(pod('c'), decided);
  await written();
  t.equal(events().length, 2, 'a lost response does not cause a second event');
  recorder.record(pod('c'), decided);
  await written();
  t.equal(events().find((event) => event.metadata.name.startsWith('c.'))?.count, 2);
  for (const status of [403, 404, 422]) {
    store.fault(/^POST/, { status, times: 1 });
    recorder.record(pod(`refused-${status}`), decided);
    await written();
  }
  t.strictSame(await outcomes(), { written: 2, counted: 1, failed: 4 });
});

void t.test('a delayed event does not delay others, and is not written twice', async (t) => {
  const { store, recorder, events, written, time } = await start(t);
  store.fault(`POST ${collection}`, { times: 1, status: 429, retryAfter: 20 });
  recorder.record(pod('first'), decided);
  for (let n = 0; n < 20; n++) recorder.record(pod(`other-${n}`), decided);
  await store.quiet();
  await time.advance(1000);
  await store.quiet();
  recorder.record(pod('first'), decided);
  await store.quiet();
  t.equal(events().length, 20, 'all but the first');
  await written();
  t.strictSame(
    events()
      .filter(({ metadata }) => metadata.name.startsWith('first'))
      .map(({ count }) => count),
    [2],
  );
});

void t.test('one object cannot use up the workers', async (t) => {
  const { store, recorder, events } = await start(t);
  store.fault('POST /api/v1/namespaces/slow/events', { hang: true });
  for (let n = 0; n < 20; n++)
    recorder.record(pod('a', { namespace: 'slow' }), { ...decided, message: `${n}` });
  await store.quiet();
  recorder.record(pod('b'), decided);
  await store.quiet();
  t.equal(events().length, 1);
});

void t.test('3,000 events: 100 at once, then ten per second, at most 1,000 waiting', async (t) => {
  const { recorder, written, time, outcomes, store } = await start(t);
  for (let i = 0; i < 3000; i++) recorder.record(pod(`pod-${i}`), decided);
  await store.quiet();
  t.ok(store.writes().length <= 101);
  like(t, await outcomes(), { dropped: 2000 });
  const from = time.monotonic();
  await written();
  t.ok(time.monotonic() - from >= 89_000, 'ten per second after the first hundred');
  t.strictSame(await outcomes(), { written: 1000, dropped: 2000 });
});

void t.test('an aborted flush drops the events that are not written', async (t) => {
  const { recorder, store, outcomes } = await start(t);
  store.fault(/^POST/, { hang: true });
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) recorder.record(pod(name), decided);
  await store.quiet();
  const abort = new AbortController();
  const flushed = recorder.flush(abort.signal);
  abort.abort(new Error('end'));
  await flushed;
  t.strictSame(await outcomes(), { failed: 4, dropped: 2 }, 'four were being written, two were waiting');
  await recorder.flush(neverAborted);
});

void t.test('record never throws', async (t) => {
  const { recorder } = await start(t);
  t.doesNotThrow(() => recorder.record(undefined as unknown as ObjectReference, decided));
  t.doesNotThrow(() => recorder.record(pod('a'), undefined as unknown as typeof decided));
});
