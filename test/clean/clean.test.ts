/** A whole run of clean, and its Lease. */
import t, { type Test } from 'tap';
import {
  done,
  gated,
  gatesOf,
  heldBy,
  holderOf,
  leasePath,
  podPath,
  webhooksPath,
  world,
} from './support.ts';
import { leaderWrites } from '../../src/kube/api/fenced.ts';
import { like } from '../support/like.ts';

const ours = { webhooks: [{ name: 'pods.arch.example' }] };

/** A cluster with a leader, the webhook configuration and these gated pods. */
async function installed(t: Test, ...pods: string[]) {
  const test = await world(t);
  test.store.put(leasePath, heldBy('leader-1'));
  test.store.put(webhooksPath, ours);
  for (const name of pods) test.store.put(podPath(name), gated());
  return test;
}

t.test('it removes all of archwright, in order, and nothing else', async (t) => {
  const { store, clean, lines } = await installed(t, 'b');
  store.put(podPath('a'), gated('other.example/x'));
  store.put(podPath('free'), { spec: { containers: [] } });
  const untouched = store.get(podPath('free'))?.metadata.resourceVersion;

  const report = await clean();
  t.equal(report.complete, true);
  t.strictSame(done(report), { lease: 1, 'webhook configuration': 1, gates: 2 });
  t.strictSame(gatesOf(store, 'a'), ['other.example/x'], "other controllers' gates stay");
  t.strictSame(gatesOf(store, 'b') ?? [], []);
  t.equal(store.get(podPath('free'))?.metadata.resourceVersion, untouched);
  t.equal(store.get(webhooksPath), undefined);
  t.equal(store.get(leasePath), undefined);
  const writes = store.writes().map(({ verb, path }) => `${verb} ${path}`);
  const renewals = writes.filter((each) => each === `PATCH ${leasePath}`).slice(1);
  t.strictSame(writes, [
    `PATCH ${leasePath}`,
    `DELETE ${webhooksPath}`,
    `PATCH ${podPath('a')}`,
    `PATCH ${podPath('b')}`,
    ...renewals,
    `DELETE ${leasePath}`,
  ]);
  t.strictSame(lines, [
    'Lease archwright/archwright-controller is held by leader-1',
    'lease: 1 done',
    'webhook configuration: 1 done',
    'gates: 2 done',
    'looking for late gates for another 14 s',
  ]);
});

t.test('a cluster without archwright is not changed', async (t) => {
  const { store, clean, elapsed, lines } = await world(t);
  const report = await clean();
  t.equal(report.complete, true);
  t.strictSame(done(report), { lease: 1 });
  t.equal(lines.filter((line) => line.startsWith('looking for late gates')).length, 1);
  t.equal(store.get(leasePath), undefined, 'its own Lease is removed');
  t.ok(elapsed() < 10_000, 'without a leader, it does not wait for one');
});

t.test('pods that an API server gates after the webhook configuration is gone are ungated too', async (t) => {
  const { store, clean, elapsed } = await world(t);
  store.put(webhooksPath, ours);
  let looks = 0;
  store.fault('GET /api/v1/pods', {
    before: () => {
      looks += 1;
      if (looks === 3) store.put(podPath('late'), gated());
    },
  });
  const report = await clean();
  t.equal(report.complete, true);
  t.strictSame(gatesOf(store, 'late') ?? [], []);
  t.ok(elapsed() >= 5000);
});

t.test('it removes what a deposed leader may still write', async (t) => {
  for (const [holder, renewedAgoMs, waits] of [
    ['leader-1', 0, true],
    ['leader-1', 40_000, true],
    ['leader-1', 3_600_000, true],
    ['', 0, false],
    ['archwright-clean/12345678', 1000, true],
  ] as const) {
    const { store, clean, elapsed } = await world(t);
    store.put(leasePath, heldBy(holder, renewedAgoMs));
    store.put(webhooksPath, ours);
    store.fault('GET /api/v1/pods', {
      before: () => {
        if (elapsed() >= 10_000 && !store.get(webhooksPath)) store.put(webhooksPath, ours);
      },
      times: 12,
    });
    const report = await clean();
    t.equal(elapsed() >= 15_000, waits, `${holder} ${renewedAgoMs}`);
    t.equal(report.complete, true);
    t.equal(store.get(webhooksPath), undefined);
  }
});

t.test('it gives up if pods keep being gated', async (t) => {
  const { store, clean, elapsed } = await world(t);
  let count = 0;
  store.fault('GET /api/v1/pods', { before: () => void store.put(podPath(`p${(count += 1)}`), gated()) });
  const report = await clean();
  t.equal(report.complete, false);
  like(t, report.steps.find(({ step }) => step === 'gates')?.failures, [{ why: /another archwright/ }]);
  t.ok(elapsed() < 120_000);
});

t.test('a dry run changes nothing', async (t) => {
  const { store, clean, lines } = await installed(t, 'a');
  const version = store.version();
  const report = await clean({ dryRun: true });
  t.equal(store.version(), version);
  t.strictSame(store.writes(), []);
  t.strictSame(done(report), { 'webhook configuration': 1, gates: 1 });
  t.match(lines.join('\n'), /would change pod shop\/a/);
  t.match(lines.join('\n'), /held by leader-1/);
});

t.test('forbidden removals are reported, and the rest is removed', async (t) => {
  const { store, clean } = await installed(t, 'a', 'b');
  store.fault(`DELETE ${webhooksPath}`, { status: 403, message: 'no right to delete' });
  store.fault(`PATCH ${podPath('a')}`, { status: 403, message: 'no right to patch' });
  store.fault(/^GET .*certificatesigningrequests/, { status: 403 });
  const report = await clean();
  t.equal(report.complete, false);
  const failures = report.steps.flatMap((step) => step.failures);
  like(t, failures, [
    { what: 'MutatingWebhookConfiguration archwright', why: '403 no right to delete' },
    { what: 'pod shop/a', why: /no right to patch/ },
    { what: /certificatesigningrequests/ },
    { what: 'certificates', why: /kept while there may be a webhook configuration/ },
  ]);
  t.strictSame(gatesOf(store, 'b') ?? [], []);
  t.equal(holderOf(store), '', 'the Lease is free, so a controller can lead again');
});

t.test('removals that failed once are repeated', async (t) => {
  const { store, clean } = await world(t);
  store.put(webhooksPath, ours);
  store.put(podPath('a'), gated());
  store.fault(`PATCH ${podPath('a')}`, { status: 403, times: 1 });
  store.fault(/^GET .*mutatingwebhookconfigurations/, { status: 403, times: 1 });
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.equal(store.get(webhooksPath), undefined);
  t.strictSame(gatesOf(store, 'a') ?? [], []);
});

t.test('pods that change, disappear or lose their gate meanwhile', async (t) => {
  const { store, clean, lines } = await world(t);
  for (const name of ['changed', 'gone', 'opened', 'busy'])
    store.put(podPath(name), gated('other.example/x'));
  const once = (name: string, before: () => void, times = 1) =>
    store.fault(`PATCH ${podPath(name)}`, { times, before });
  const opened = { spec: { containers: [], schedulingGates: [] } };
  once('changed', () => void store.put(podPath('changed'), gated('other.example/x', 'other.example/y')));
  once('gone', () => store.remove(podPath('gone')));
  once('opened', () => void store.put(podPath('opened'), opened));
  once('busy', () => void store.put(podPath('busy'), gated()), 3);
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.strictSame(
    lines.filter((line) => line.startsWith('gates')),
    ['gates: 4 done'],
    'at once',
  );
  t.strictSame(gatesOf(store, 'changed'), ['other.example/x', 'other.example/y']);
  t.equal(gatesOf(store, 'gone'), undefined);
  t.strictSame(gatesOf(store, 'busy') ?? [], []);
});

t.test('it completes despite 429, 500, lost responses and expired pages', async (t) => {
  const { store, clean, elapsed, lines } = await world(t);
  const pods = Array.from({ length: 1200 }, (_, index) => `p${index}`);
  for (const name of pods) store.put(podPath(name), gated());
  store.put(webhooksPath, ours);
  store.fault(`PATCH ${podPath('p1')}`, { status: 429, retryAfter: 3, times: 2 });
  store.fault(`PATCH ${podPath('p2')}`, { status: 500, times: 4 });
  store.fault(`PATCH ${podPath('p3')}`, { lost: true, times: 1 });
  store.fault(`DELETE ${webhooksPath}`, { lost: true, times: 1 });
  let pages = 0;
  store.fault('GET /api/v1/pods', {
    before: () => {
      pages += 1;
      // Three times, the second page of a list has expired.
      if ([2, 4, 6].includes(pages)) store.compact();
    },
    times: 9,
  });
  const report = await clean();
  t.equal(report.complete, true, JSON.stringify(report));
  t.ok(elapsed() >= 5000);
  const progress = lines.filter((line) => line.startsWith('gates:'));
  t.strictSame(progress.slice(0, -1), ['gates: 500 done', 'gates: 1000 done']);
  t.ok(pods.every((name) => (gatesOf(store, name) ?? []).length === 0));
  const limits = store.received('GET /api/v1/pods').map(({ query }) => query.get('limit'));
  t.ok(limits.every((limit) => limit === '500'));
});

t.test('writes are as many in a second as those of a leader', async (t) => {
  const { store, clean, elapsed } = await world(t);
  const { burst, perSecond } = leaderWrites;
  for (let index = 0; index < burst + perSecond / 4; index += 1) store.put(podPath(`p${index}`), gated());
  let lastAt = 0;
  store.fault(/^PATCH .*pods/, { before: () => void (lastAt = elapsed()) });
  await clean();
  t.ok(lastAt >= 250 && lastAt < 1000, `${lastAt} ms`);
});

t.test('a list that always expires is a failure', async (t) => {
  const { store, clean } = await installed(t);
  for (let index = 0; index < 501; index += 1) store.put(podPath(`p${index}`), gated());
  store.fault((request) => request.query.has('continue'), { before: () => store.compact() });
  const { steps } = await clean();
  const reasons = new Set(steps.flatMap(({ failures }) => failures.map(({ why }) => why)));
  t.strictSame([...reasons], ['410 The provided continue parameter is too old']);
});

t.test('after a killed run, the next one completes the work', async (t) => {
  const { store, clean } = await installed(t, 'a', 'b', 'c');
  const stop = new AbortController();
  store.fault(/^PATCH .*pods\/b$/, { times: 1, before: () => stop.abort(new Error('killed')), lost: true });
  await t.rejects(clean({ signal: stop.signal }), /killed/);
  t.ok(store.get(leasePath), 'a killed run leaves the Lease');
  const report = await clean();
  t.equal(report.complete, true);
  for (const name of ['a', 'b', 'c']) t.strictSame(gatesOf(store, name) ?? [], []);
  t.equal(store.get(leasePath), undefined);
});

t.test('it holds the Lease while it works, and stops when another process takes it', async (t) => {
  const { store, clean, elapsed } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  let renewals = 0;
  let seen: unknown;
  store.fault(`PATCH ${leasePath}`, {
    before: () => {
      renewals += 1;
      if (renewals === 2) seen = store.get(leasePath)?.spec;
      if (renewals === 3) store.put(leasePath, heldBy('archwright-clean/another'));
    },
  });
  await t.rejects(clean(), { message: /taken by another process.*run archwright clean again/ });
  like(t, seen, { holderIdentity: /^archwright-clean\//, leaseDurationSeconds: 15, leaseTransitions: 4 });
  t.ok(elapsed() <= 15_000);
  like(t, store.get(leasePath), heldBy('archwright-clean/another'), 'the Lease stays with its new holder');
});

t.test('without a renewal it stops before the Lease expires, and does not delete it', async (t) => {
  const { store, clean, elapsed } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  store.fault('GET /api/v1/pods', { times: 1, before: () => void store.fault(/leases/, { status: 500 }) });
  await t.rejects(clean(), { message: /or expired/ });
  t.ok(elapsed() >= 10_000 && elapsed() < 15_000, `${elapsed()} ms`);
  t.match(holderOf(store), /^archwright-clean\//);
});

t.test('a Lease that cannot be deleted at the end is no failure: it expires', async (t) => {
  const { store, clean } = await installed(t);
  store.fault(`DELETE ${leasePath}`, { status: 500 });
  t.equal((await clean()).complete, true);
  t.match(holderOf(store), /^archwright-clean\//);
});

t.test('if it may not write the Lease, it still removes the rest', async (t) => {
  const { store, clean } = await world(t);
  store.put(podPath('a'), gated());
  store.fault(/leases/, { status: 403 });
  const report = await clean();
  t.equal(report.complete, false);
  t.strictSame(gatesOf(store, 'a') ?? [], []);
});
