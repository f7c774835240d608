/** The Lease of a clean: taken, renewed, lost. */
import t from 'tap';
import { isCleanHolder, takeLease } from '../../../src/controller/clean/lease.ts';
import { CleanRun } from '../../../src/controller/clean/run.ts';
import { gated, gatesOf, heldBy, holderOf, leasePath, podPath, world } from './support.ts';

t.test('it holds the Lease while it works, and stops when another process takes it', async (t) => {
  const { store, clean, elapsed } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  let renewals = 0;
  let seen: string | undefined;
  store.fault(`PATCH ${leasePath}`, {
    before: () => {
      renewals += 1;
      if (renewals === 2) seen = holderOf(store);
      if (renewals === 3) store.put(leasePath, heldBy('archwright-clean/another'));
    },
  });
  await t.rejects(clean(), { code: 'lease-lost', message: /archwright-clean\/another/ });
  t.ok(isCleanHolder(seen));
  t.ok(elapsed() <= 15_000);
  t.match(store.get(leasePath), heldBy('archwright-clean/another'), 'the Lease stays with its new holder');
});

t.test('it extends the lease duration of one second that a leader left at release', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });
  let seen: unknown;
  store.fault('GET /api/v1/pods', { before: () => void (seen ??= store.get(leasePath)?.spec) });
  t.equal((await clean()).complete, true);
  t.match(seen, { holderIdentity: /^archwright-clean\//, leaseDurationSeconds: 15 });
});

t.test('it keeps the Lease if another writer changes it without taking it', async (t) => {
  const { store, clean } = await world(t);
  store.put(leasePath, heldBy('leader-1'));
  let renewals = 0;
  store.fault(`PATCH ${leasePath}`, {
    before: () => {
      renewals += 1;
      const lease = store.get(leasePath);
      if (renewals === 2 && lease)
        store.put(leasePath, { ...lease, metadata: { ...lease.metadata, labels: { a: 'b' } } });
    },
  });
  t.equal((await clean()).complete, true);
});

t.test('if it may not write the Lease, it still removes the rest', async (t) => {
  const { store, clean } = await world(t);
  store.put(podPath('a'), gated());
  store.fault(/leases/, { status: 403 });
  const report = await clean();
  t.equal(report.complete, false);
  t.same(gatesOf(store, 'a') ?? [], []);
});

t.test('a renewal that hangs is repeated; without a renewal, the Lease is lost', async (t) => {
  const { store, options, clock } = await world(t);
  const lease = await takeLease(new CleanRun(options), 'archwright-controller');
  if (lease === undefined) throw new TypeError('the lease was not taken');
  await clock.advance(5_000);
  await store.until(() => store.received(`PATCH ${leasePath}`).length === 1, 'a renewal');
  await store.quiet();
  const answered = store.fault(`PATCH ${leasePath}`, { hang: true });
  await clock.advance(5_000);
  await store.until(() => store.received(`PATCH ${leasePath}`).length === 2, 'the hanging renewal');
  await clock.advance(9_000);
  await store.until(() => store.received(`PATCH ${leasePath}`).length === 3, 'the repeated renewal');
  t.notOk(lease.signal.aborted, 'held for 15 s after the last renewal');
  await clock.advance(1_000);
  t.ok(lease.signal.aborted, 'lost after that');
  t.match(lease.signal.reason, { code: 'lease-lost' });
  answered();
  await lease.end('delete');
  t.ok(store.get(leasePath), 'a lost Lease is not deleted');
});
