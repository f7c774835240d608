/** The Lease of a clean with renewals that get no answer: others may take it, so it is lost in time. */
import t from 'tap';
import { takeLease } from '../../../src/controller/clean/lease.ts';
import { CleanRun } from '../../../src/controller/clean/run.ts';
import { leasePath, world } from './support.ts';

void t.test('renewals that hang', async (t) => {
  const { store, options, clock } = await world(t);
  const lease = await takeLease(new CleanRun(options), 'archwright-controller');
  if (lease === undefined) throw new TypeError('the lease was not taken');
  await clock.advance(5_000);
  await store.until(() => store.asked(`PATCH ${leasePath}`).length === 1, 'a renewal');
  await store.quiet();
  const answered = store.fault(`PATCH ${leasePath}`, { hang: true });
  await clock.advance(5_000);
  await store.until(() => store.asked(`PATCH ${leasePath}`).length === 2, 'a renewal that hangs');
  await clock.advance(9_000);
  await store.until(() => store.asked(`PATCH ${leasePath}`).length === 3, 'another try meanwhile');
  t.notOk(lease.signal.aborted, 'it is ours for 15 s after the last renewal');
  await clock.advance(1_000);
  t.ok(lease.signal.aborted, 'then others may take it');
  t.match(lease.signal.reason, { code: 'lease-lost' });
  answered();
  await lease.end('delete');
  t.ok(store.get(leasePath), 'a lost Lease is left to others');
});
