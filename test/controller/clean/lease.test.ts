/** The Lease of a clean whose renewals get no answer at all: others may take it, so it is lost in time. */
import t from 'tap';
import { createCleaning } from '../../../src/controller/clean/steps.ts';
import { takeLease } from '../../../src/controller/clean/lease.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { startKubeStore } from '../../support/kube-store.ts';
import { leasePath } from './support.ts';

void t.test('renewals that hang', async (t) => {
  const time = createFakeClock();
  const store = await startKubeStore({ now: () => time.now() });
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  t.teardown(async () => {
    client.close();
    await store.close();
  });
  const cleaning = createCleaning({
    client,
    limiter: { take: () => Promise.resolve(), pause: () => undefined },
    namespace: 'archwright',
    configuration: defaultConfiguration(),
    dryRun: false,
    restartPods: false,
    progress: () => undefined,
    signal: new AbortController().signal,
    clock: time,
    sleep: time.sleep,
  });
  const hold = await takeLease(cleaning, 'archwright-controller');
  if (hold === undefined) throw new TypeError('the lease was not taken');
  await time.advance(5_000);
  await store.until(() => store.asked(`PATCH ${leasePath}`).length === 1, 'a renewal');
  await store.quiet();
  const answered = store.fault(`PATCH ${leasePath}`, { hang: true });
  await time.advance(5_000);
  await store.until(() => store.asked(`PATCH ${leasePath}`).length === 2, 'a renewal that hangs');
  await time.advance(9_000);
  await store.until(() => store.asked(`PATCH ${leasePath}`).length === 3, 'another try meanwhile');
  t.notOk(hold.signal.aborted, 'it is ours for 15 s after the last renewal');
  await time.advance(1_000);
  t.ok(hold.signal.aborted, 'then anybody may take it');
  t.match(hold.signal.reason, { code: 'lease-lost' });
  answered();
  await hold.end('delete');
  t.ok(store.get(leasePath), 'what was lost is left to others');
});
