import t, { type Test } from 'tap';
import { runCandidacy } from '../../../src/controller/lead/candidacy.ts';
import { connectedStore } from '../../kube/support.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { captureLog } from '../../support/captured.ts';
import { createHastyClock } from '../../support/fake-clock.ts';

const path = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';

function hold(store: KubeStore, holderIdentity: string, renewTime = '2026-01-01T00:00:00.000000Z'): void {
  store.put(path, { spec: { holderIdentity, leaseDurationSeconds: 15, leaseTransitions: 0, renewTime } });
}

/** A candidate whose clock advances with each of its waits. */
async function candidate(t: Test, random = 0) {
  const { store, client } = await connectedStore(t);
  const stop = new AbortController();
  const { log, lines: logged } = captureLog();
  const terms: AbortSignal[] = [];
  let now = 0;
  let waits = 0;
  let onWait: (waits: number) => void = () => undefined;
  // Deadlines of requests and of leadership never expire. Only pauses between reads of the Lease take time.
  const hasty = createHastyClock((ms) => ms === 2000);
  const run = () =>
    runCandidacy({
      client,
      namespace: 'archwright',
      name: 'archwright-controller',
      identity: 'pod-a_1',
      times: { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 },
      lead: (signal) => {
        terms.push(signal);
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
      },
      stop: stop.signal,
      log,
      clock: {
        ...hasty,
        now: () => now,
        monotonic: () => now,
        random: () => random,
        sleep: async (ms, signal) => {
          await hasty.sleep(ms, signal);
          now += ms;
          onWait((waits += 1));
        },
      },
    });
  t.teardown(() => stop.abort());
  return {
    store,
    run,
    stop,
    terms,
    logged,
    elapsed: () => now,
    eachWait: (listener: typeof onWait) => {
      onWait = listener;
    },
  };
}

const holderOf = (store: KubeStore): unknown =>
  (store.get(path)?.spec as { holderIdentity?: string } | undefined)?.holderIdentity;

t.test('a candidate gives way to `clean`, and ends for good once the Lease is deleted', async (t) => {
  const { store, run, eachWait, terms, logged, elapsed } = await candidate(t, 1);
  hold(store, 'archwright-clean/1');
  eachWait((waits) => {
    if (waits < 20) hold(store, 'archwright-clean/1', `2026-01-01T00:00:${10 + waits}.000000Z`);
    else store.remove(path);
  });
  t.equal(await run(), 'cleaned');
  t.strictSame(terms, [], 'it never led');
  // Pauses with jitter would not end here.
  t.ok(elapsed() >= 30_000, 'it looks every two seconds, as long as clean runs');
  t.equal(store.get(path), undefined);
  t.equal(logged.filter((line) => line.includes('holds the lease; this replica waits')).length, 1);
  t.match(logged.join(''), /removed from this cluster by archwright clean/);
});

t.test('a candidate leads again if `clean` was killed, gave up, or lost the Lease', async (t) => {
  for (const [name, next] of [
    ['killed', undefined],
    ['released', ''],
    ['another leader', 'pod-b_1'],
  ] as const) {
    const { store, run, stop, eachWait, terms, elapsed } = await candidate(t);
    hold(store, 'archwright-clean/1');
    eachWait((waits) => {
      if (waits === 2 && next !== undefined) hold(store, next);
      if (terms.length > 0) stop.abort();
    });
    t.equal(await run(), 'stopped', name);
    t.equal(terms.length, 1, `${name}: it leads again`);
    t.equal(holderOf(store), '', 'the Lease is released in the end');
    t.ok(elapsed() < 60_000);
    if (next === undefined) t.ok(elapsed() >= 15_000, "not before the other's Lease has expired");
  }
});

t.test('an unreadable Lease does not count as deleted', async (t) => {
  const { store, run, eachWait, terms, elapsed } = await candidate(t);
  hold(store, 'archwright-clean/1');
  eachWait((waits) => {
    if (waits === 1) store.fault(`GET ${path}`, { status: 500, times: 5 });
    if (waits === 8) store.remove(path);
    else hold(store, 'archwright-clean/1', `2026-01-01T00:00:${10 + waits}.000000Z`);
  });
  t.equal(await run(), 'cleaned');
  t.strictSame(terms, []);
  t.ok(elapsed() >= 8 * 2000);
});

t.test('a stopped candidate leaves the Lease of `clean`', async (t) => {
  const { store, run, stop, eachWait, terms } = await candidate(t);
  hold(store, 'archwright-clean/1');
  eachWait(() => stop.abort());
  t.equal(await run(), 'stopped');
  t.strictSame(terms, []);
  t.equal(holderOf(store), 'archwright-clean/1');
});
