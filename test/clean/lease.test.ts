/** The Lease of a clean: taken, kept, lost. */
import t from 'tap';
import { gated, gatesOf, heldBy, holderOf, leasePath, podPath, world } from './support.ts';
import { like } from '../support/like.ts';

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

t.test('if it may not write the Lease, it still removes the rest', async (t) => {
  const { store, clean } = await world(t);
  store.put(podPath('a'), gated());
  store.fault(/leases/, { status: 403 });
  const report = await clean();
  t.equal(report.complete, false);
  t.strictSame(gatesOf(store, 'a') ?? [], []);
});
