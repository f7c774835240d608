import t, { type Test } from 'tap';
import { aborted } from '../../../src/async/wait.ts';
import { microTime, recordOf } from '../../../src/kube/election/lease-lock.ts';
import { runElection, type LeaderElectionOptions } from '../../../src/kube/election/leader-election.ts';
import { connectedStore } from '../support.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import type { StoredObject } from '../../support/kube-store.ts';
import { silentLog } from '../../support/captured.ts';
import { like } from '../../support/like.ts';

const leases = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases';
const path = `${leases}/controller`;
const times = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };

type Lead = LeaderElectionOptions['lead'];

async function start(t: Test) {
  const { store, client } = await connectedStore(t);
  const time = createFakeClock(() => 0);
  const stop = new AbortController();
  const ends: Promise<unknown>[] = [];
  t.teardown(async () => {
    stop.abort(new Error('end of the test'));
    await time.advance(5_000);
    client.close();
    await store.close();
    await time.advance(60_000);
    await Promise.allSettled(ends);
  });

  function candidate(identity: string, options: Partial<LeaderElectionOptions> = {}) {
    const stopping = new AbortController();
    /** The arguments of `lead`, for each term. */
    const terms: { readonly signal: AbortSignal; readonly holds: () => boolean }[] = [];
    const lead: Lead = (signal, holds) => {
      terms.push({ signal, holds });
      return aborted(signal);
    };
    const done = runElection({
      client,
      namespace: 'archwright',
      name: 'controller',
      identity,
      times,
      lead,
      stop: AbortSignal.any([stop.signal, stopping.signal]),
      clock: time,
      log: silentLog,
      ...options,
    });
    done.catch(() => undefined);
    ends.push(done);
    const end = (): Promise<void> => {
      stopping.abort(new Error('end'));
      return done;
    };
    return { done, terms, end, leads: () => terms.at(-1)?.signal.aborted === false };
  }

  return {
    store,
    time,
    candidate,
    /** A candidate that leads. */
    leader: async () => {
      const a = candidate('a');
      await store.until(() => a.leads());
      return a;
    },
    /** Advances the clock in steps, and waits for the server after each. */
    pass: async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 1000) {
        await time.advance(Math.min(1000, left));
        await store.quiet();
      }
    },
    spec: () => (store.get(path)?.spec ?? {}) as Record<string, unknown>,
  };
}

const held = (holder: string, renewTime: string, more: object = {}): object => ({
  spec: { holderIdentity: holder, leaseDurationSeconds: 15, renewTime, leaseTransitions: 3, ...more },
});

void t.test('the first candidate creates, renews and releases the lease', async (t) => {
  const { store, time, leader, pass, spec } = await start(t);
  const a = await leader();
  const acquired = microTime(time.now());
  t.strictSame(spec(), {
    holderIdentity: 'a',
    leaseDurationSeconds: 15,
    acquireTime: acquired,
    renewTime: acquired,
    leaseTransitions: 0,
  });
  await pass(6_000);
  like(t, spec(), { acquireTime: acquired, renewTime: microTime(time.now()), leaseTransitions: 0 });
  t.equal(store.received(`PATCH ${path}`).length, 3, 'one request per renewal');
  t.equal(store.received(/^(?:GET|PUT)/).length, 1);
  await a.end();
  like(t, spec(), { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 });
  t.equal(a.terms.length, 1);
});

void t.test('a released lease is taken at the next retry, and leaseTransitions grows', async (t) => {
  const { candidate, leader, pass, spec } = await start(t);
  const a = await leader();
  const b = candidate('b');
  await pass(20_000);
  t.notOk(b.leads());
  await a.end();
  await pass(2_500);
  t.ok(b.leads());
  like(t, spec(), { holderIdentity: 'b', leaseTransitions: 1 });
});

void t.test('a lease that is not renewed is taken after its duration by the local clock', async (t) => {
  const { store, candidate, pass } = await start(t);
  store.put(path, held('gone', '2001-01-01T00:00:00.000000Z', { leaseDurationSeconds: 30 }));
  const a = candidate('a');
  await pass(29_000);
  t.notOk(a.leads(), 'renewTime is from another clock');
  await pass(4_000);
  t.ok(a.leads());
  like(t, store.get(path)?.spec, { leaseTransitions: 4 });
});

void t.test('any change of renewTime is a renewal; a change of labels is not', async (t) => {
  const { store, candidate, pass } = await start(t);
  const a = candidate('a');
  await a.end();
  for (let i = 0; i < 10; i++) {
    store.put(path, held('other', `2001-01-01T00:00:0${i}.000000Z`));
    if (i === 0) candidate('b');
    await pass(5_000);
  }
  like(t, store.get(path)?.spec, { holderIdentity: 'other' });
  for (let i = 0; i < 4; i++) {
    const lease = store.get(path) as StoredObject;
    store.put(path, { ...lease, metadata: { ...lease.metadata, labels: { i: String(i) } } });
    await pass(5_000);
  }
  like(t, store.get(path)?.spec, { holderIdentity: 'b' });
});

void t.test('one of four candidates leads', async (t) => {
  const { store, candidate, pass } = await start(t);
  const all = ['a', 'b', 'c', 'd'].map((identity) => candidate(identity));
  await store.until(() => all.some((each) => each.leads()));
  for (let i = 0; i < 10; i++) {
    await pass(3_000);
    t.equal(all.filter((each) => each.leads()).length, 1);
  }
  like(t, store.get(path)?.spec, { leaseTransitions: 0 });
});

for (const [what, fault] of [
  ['refuses', { status: 500 }],
  ['is busy', { status: 429, retryAfter: 1 }],
  ['resets', { reset: true }],
  ['hangs', { hang: true }],
  ['forbids', { status: 403 }],
] as const) {
  void t.test(`if the server ${what}, leadership ends at the deadline and returns afterwards`, async (t) => {
    const { store, time, leader, pass } = await start(t);
    const a = await leader();
    await pass(4_000);
    const renewed = time.monotonic();
    const end = store.fault(/./, fault);
    await pass(9_500);
    t.ok(a.leads(), 'within the deadline');
    t.ok(a.terms[0]?.holds());
    await pass(500);
    t.notOk(a.leads());
    t.notOk(a.terms[0]?.holds());
    t.equal(time.monotonic() - renewed, 10_000);
    end();
    await pass(8_000);
    t.ok(a.leads(), 'a new term');
    t.equal(a.terms.length, 2);
    like(t, store.get(path)?.spec, { holderIdentity: 'a', leaseTransitions: 0 });
  });
}

void t.test('lost responses, other changes and a deleted lease do not end leadership', async (t) => {
  const { store, leader, pass, spec } = await start(t);
  const a = await leader();
  store.fault(`PATCH ${path}`, { lost: true, times: 1 });
  await pass(6_000);
  t.ok(a.leads());
  const lease = store.get(path) as StoredObject;
  store.put(path, { ...lease, metadata: { ...lease.metadata, annotations: { kubectl: 'edited' } } });
  await pass(6_000);
  t.ok(a.leads());
  store.remove(path);
  await pass(6_000);
  t.ok(a.leads(), 'a deleted lease is created again');
  like(t, spec(), { holderIdentity: 'a' });
  t.equal(a.terms.length, 1);
});

void t.test('a leader stops at once when it sees another holder', async (t) => {
  const { store, leader, pass } = await start(t);
  const a = await leader();
  store.put(path, held('thief', '2026-11-01T00:00:00.000000Z'));
  await pass(2_500);
  t.notOk(a.leads());
  await pass(20_000);
  t.ok(a.leads(), 'a candidate again');
});

void t.test('after a pause beyond its deadline, a process does not lead', async (t) => {
  const { store, time, leader, pass } = await start(t);
  const a = await leader();
  await pass(2_000);
  const before = store.requests.length;
  const jump = time.jump(60_000);
  t.notOk(a.terms[0]?.holds(), 'before any timer has run');
  t.ok(a.terms[0]?.signal.aborted);
  await jump;
  await store.until(() => store.requests.length > before);
  const methods = store.requests.slice(before).map((request) => request.method);
  t.equal(methods[0], 'PATCH', 'it is a candidate again');
  await store.until(() => a.terms.length === 2);
});

void t.test('after a pause, a process does not take the lease of the next leader', async (t) => {
  const { store, time, leader, pass, spec } = await start(t);
  const a = await leader();
  store.put(path, held('b', microTime(time.now()), { leaseDurationSeconds: 3600 }));
  await time.jump(60_000);
  await store.quiet();
  await pass(20_000);
  t.notOk(a.leads());
  like(t, spec(), { holderIdentity: 'b' });
});

void t.test('after a suspend, the wall clock ends leadership', async (t) => {
  const { time, leader, pass } = await start(t);
  const a = await leader();
  await pass(4_000);
  const [term] = a.terms;
  time.setWall(time.now() + 9_000);
  t.ok(term?.holds(), 'before the deadline');
  time.setWall(time.now() + 1_000);
  t.notOk(term?.holds(), 'at the deadline, before any timer runs');
  t.ok(term?.signal.aborted);
  await pass(5_000);
  t.ok(a.leads(), 'leads again, as no other candidate took the lease');
  time.setWall(time.now() - 3_600_000);
  t.ok(a.terms.at(-1)?.holds(), 'a clock that is set back does not end leadership');
  await pass(20_000);
  t.ok(a.leads());
  t.equal(a.terms.length, 2);
});

void t.test('the deadline counts from the request of a renewal, not from its response', async (t) => {
  const { store, time, leader, pass } = await start(t);
  const a = await leader();
  const answer = Promise.withResolvers<void>();
  store.fault(/^PATCH/, { before: () => answer.promise, times: 1 });
  await pass(2_000);
  const sentAt = time.monotonic();
  await pass(4_000);
  answer.resolve();
  await store.quiet();
  store.fault(/./, { status: 503 });
  await pass(5_000);
  t.ok(a.leads());
  await pass(1_000);
  t.notOk(a.leads());
  t.equal(time.monotonic() - sentAt, 10_000);
});

void t.test('a lease of another holder is not released', async (t) => {
  const { store, leader, spec } = await start(t);
  const a = await leader();
  store.put(path, held('b', '2026-11-01T00:00:00.000000Z'));
  await a.end();
  like(t, spec(), { holderIdentity: 'b', leaseDurationSeconds: 15 });
});

void t.test('stopping does not wait for a hanging server', async (t) => {
  const { store, time, candidate, leader } = await start(t);
  const a = await leader();
  store.fault(/./, { hang: true });
  for (const each of [a, candidate('b')]) {
    await store.quiet();
    const ended = each.end();
    await store.quiet();
    await time.advance(3_000);
    t.equal(await ended, undefined);
  }
});

void t.test('stopped during a take that succeeds, a candidate releases the lease', async (t) => {
  const { store, candidate, spec } = await start(t);
  const response = Promise.withResolvers<void>();
  store.fault(`POST ${leases}`, { before: () => response.promise, times: 1 });
  const a = candidate('a');
  await store.until(() => store.received(`POST ${leases}`).length === 1);
  store.put(path, held('a', '2026-11-01T00:00:00.000000Z'));
  await a.end();
  response.resolve();
  like(t, spec(), { holderIdentity: '' });
  t.equal(a.terms.length, 0);
});

void t.test('stopped after a take with a lost response, a candidate releases the lease', async (t) => {
  const { store, candidate, spec } = await start(t);
  store.fault(`POST ${leases}`, { lost: true, times: 1 });
  const a = candidate('a');
  await store.until(() => store.get(path) !== undefined);
  await store.quiet();
  like(t, spec(), { holderIdentity: 'a' });
  await a.end();
  like(t, spec(), { holderIdentity: '' });
  t.equal(a.terms.length, 0);
});

void t.test('stopped after a missed deadline, a candidate releases its lease', async (t) => {
  const { store, leader, pass, spec } = await start(t);
  const a = await leader();
  const end = store.fault(/./, { status: 500 });
  await pass(11_000);
  t.notOk(a.leads());
  end();
  like(t, spec(), { holderIdentity: 'a' });
  await a.end();
  like(t, spec(), { holderIdentity: '' });
});

void t.test('a candidate that never led sends no request when it stops', async (t) => {
  const { store, candidate, pass } = await start(t);
  store.put(path, held('other', '2026-11-01T00:00:00.000000Z'));
  const a = candidate('a');
  await pass(4_000);
  const before = store.received(/./).length;
  await a.end();
  t.equal(store.received(/./).length, before);
});

void t.test('an error of lead ends the election and releases the lease', async (t) => {
  const { store, candidate, pass, spec } = await start(t);
  const a = candidate('a', { lead: () => Promise.reject(new Error('a defect')) });
  await t.rejects(a.done, { message: 'a defect' });
  like(t, spec(), { holderIdentity: '' });
  const b = candidate('b', { lead: () => Promise.resolve() });
  t.equal(await b.done, undefined);
  like(t, spec(), { holderIdentity: '' });
  candidate('c', {
    lead: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('too late')));
      }),
  });
  await store.until(() => spec()['holderIdentity'] === 'c');
  store.put(path, held('other', '2026-11-01T00:00:00.000000Z', { leaseDurationSeconds: 1 }));
  await pass(6_000);
  like(t, spec(), { holderIdentity: 'c' }, 'an error after the end of leadership is ignored');
});

void t.test('malformed fields of a lease get defaults', async (t) => {
  const none = {
    holder: '',
    durationMs: 15_000,
    acquireTime: undefined,
    renewTime: undefined,
    transitions: 0,
  };
  const cases: [unknown, object][] = [
    [undefined, none],
    [null, none],
    ['text', none],
    [{ holderIdentity: 7, leaseDurationSeconds: '15', leaseTransitions: -1, renewTime: {} }, none],
    [
      { holderIdentity: 'x', leaseDurationSeconds: 1e9 },
      { ...none, holder: 'x', durationMs: 3_600_000 },
    ],
    [{ leaseDurationSeconds: Number.NaN }, none],
    [{ leaseDurationSeconds: 0 }, { ...none, durationMs: 0 }],
  ];
  for (const [spec, record] of cases) t.strictSame(recordOf({ spec } as object), record);
});
