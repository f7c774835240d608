import t, { type Test } from 'tap';
import { watchLeader } from '../../../src/kube/election/leader-watch.ts';
import { connectedStore } from '../support.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const leases = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases';
const path = `${leases}/controller`;

async function start(t: Test, prepare?: (store: KubeStore) => void, earlyMs = 0) {
  const { store, client } = await connectedStore(t);
  prepare?.(store);
  const time = createFakeClock();
  /** The holder in each logged change. */
  const logged: (string | undefined)[] = [];
  const write = (line: string): void => {
    const { msg, holder } = JSON.parse(line) as { msg: string; holder?: string | null };
    if (msg === 'no replica leads' || msg === 'a replica leads') logged.push(holder ?? undefined);
  };
  const leadership = watchLeader({
    client,
    namespace: 'archwright',
    name: 'controller',
    clock: { ...time, timer: (ms, run) => time.timer(Math.max(0, ms - earlyMs), run) },
    log: createLog({ destination: { write } }),
  });
  t.teardown(() => leadership.close());
  let renewals = 0;
  const renew = async (holderIdentity = 'a', leaseDurationSeconds = 15): Promise<void> => {
    store.put(path, { spec: { holderIdentity, leaseDurationSeconds, renewTime: String(++renewals) } });
    await store.quiet();
  };
  await leadership.ready(neverAborted);
  await store.quiet();
  return { store, time, leadership, logged, renew };
}

void t.test('the holder follows the lease through renewals, release and deletion', async (t) => {
  const { leadership, logged, renew, time, store } = await start(t);
  t.notOk(leadership.leads());
  await renew();
  t.ok(leadership.leads());
  t.equal(leadership.holder(), 'a');
  for (let i = 0; i < 5; i++) {
    await time.advance(14_999);
    t.ok(leadership.leads());
    await renew();
  }
  t.strictSame(logged, ['a']);
  await renew('b');
  await renew('', 1);
  t.notOk(leadership.leads());
  await renew('c');
  store.remove(path);
  await store.quiet();
  t.strictSame(logged, ['a', 'b', undefined, 'c', undefined]);
  t.equal(time.pending, 0, 'no timer is left');
  t.match(store.received(/^WATCH/)[0]?.query.get('fieldSelector'), 'metadata.name=controller');
});

void t.test('a lease expires after its duration without a change', async (t) => {
  const { leadership, logged, time, renew } = await start(t, (store) => {
    const renewTime = '2001-01-01T00:00:00.000000Z';
    store.put(path, { spec: { holderIdentity: 'dead', leaseDurationSeconds: 30, renewTime } });
  });
  t.equal(leadership.holder(), 'dead');
  await time.advance(29_999);
  t.ok(leadership.leads());
  await time.advance(1);
  t.notOk(leadership.leads());
  t.strictSame(logged.at(-1), undefined);
  await renew('alive');
  t.ok(leadership.leads());
});

void t.test(
  'if the watch is down for longer than the duration, there is no leader until it recovers',
  async (t) => {
    const { store, leadership, logged, time, renew } = await start(t);
    await renew();
    const end = store.fault(/^(?:GET|WATCH)/, { status: 503 });
    store.cutWatches('reset');
    await store.quiet();
    t.ok(leadership.leads());
    await time.advance(15_000);
    t.notOk(leadership.leads());
    end();
    store.put(path, { spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: 'later' } });
    for (let i = 0; i < 40 && !leadership.leads(); i++) {
      await time.advance(1000);
      await store.quiet();
    }
    t.ok(leadership.leads());
    t.strictSame(logged, ['a', undefined, 'a']);
  },
);

void t.test(
  'a lease expires by the clock before its timer runs; after close nothing is logged',
  async (t) => {
    const { leadership, logged, time, renew } = await start(t);
    await renew();
    const jump = time.jump(15_000);
    t.notOk(leadership.leads(), 'after a pause of the process');
    await jump;
    t.strictSame(logged, ['a', undefined]);
    leadership.close();
    await renew();
    t.strictSame(logged, ['a', undefined]);
    t.equal(time.pending, 0);
  },
);

void t.test(
  'a timer that fires early, as in Node by a fraction of a millisecond, changes nothing',
  async (t) => {
    const { leadership, logged, renew, time } = await start(t, undefined, 0.5);
    await renew();
    await time.advance(15_001);
    t.notOk(leadership.leads());
    t.strictSame(logged, ['a', undefined]);
  },
);
