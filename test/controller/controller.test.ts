import t, { type Test } from 'tap';
import { runController } from '../../src/controller/controller.ts';
import type { LeaderContext } from '../../src/controller/lead/feature.ts';
import { features } from '../../src/controller/features.ts';
import type { FactsCache } from '../../src/images/cache/cache.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import { defaultCacheTimes } from '../support/facts.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { connectedStore } from '../kube/support.ts';
import { captureLog } from '../support/captured.ts';
import { createHastyClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';

const leasePath = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';
const podsPath = '/api/v1/namespaces/shop/pods';
const eventsPath = '/api/v1/namespaces/shop/events';
const retryPeriodMs = 2000;

type Body = (leader: LeaderContext) => Promise<void>;

/** A controller whose clock advances only between two reads of the Lease. */
async function controller(t: Test, bodies: Readonly<Record<string, Body>>) {
  const { store, client } = await connectedStore(t);
  const features = Object.entries(bodies).map(([name, body]) => ({
    name,
    ready: () => Promise.resolve(),
    start: async (leader: LeaderContext) => {
      await body(leader);
      return { keys: () => [], reconcile: () => Promise.resolve() };
    },
  }));
  const stop = new AbortController();
  const metrics = createMetrics();
  const { log, lines: logged } = captureLog();
  let now = 0;
  let endsSlowly = false;
  const hasty = createHastyClock((ms) => ms === retryPeriodMs || (endsSlowly && ms === 5000) || ms === 500);
  const renewals = new Set<string>();
  let nodes: unknown;
  const leaseClient: KubeClient = {
    ...client,
    get: (path, options) => {
      renewals.add(path);
      return client.get(path, options);
    },
  };
  const run = () =>
    runController({
      client,
      leaseClient,
      namespace: 'archwright',
      agentServiceAccount: 'archwright-agent',
      identity: 'pod-a_1',
      configuration: defaultConfiguration,
      features,
      fleet: { useNodes: (current) => void (nodes = current) } as Fleet,
      cache: {} as FactsCache,
      requestOf: createRequestOf(defaultCacheTimes, false),
      log,
      metrics,
      stop: stop.signal,
      clock: {
        ...hasty,
        now: () => now,
        monotonic: () => now,
        random: () => 0,
        sleep: async (ms, signal) => {
          await hasty.sleep(ms, signal);
          now += ms;
        },
      },
    });
  t.teardown(() => stop.abort());
  return {
    store,
    run,
    stop,
    logged,
    renewals,
    nodes: () => nodes,
    metric: async (line: string) => (await metrics.render()).split('\n').includes(line),
    letEndSlowly: () => (endsSlowly = true),
    pass: (ms: number) => void (now += ms),
    holder: () => (store.get(leasePath)?.spec as { holderIdentity?: string } | undefined)?.holderIdentity,
  };
}

const until = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

t.test('a leader runs its features, then ends and releases the Lease', async (t) => {
  const resources = 'archwright_custom_resources{kind="PodPlacementConfig",state="used"}';
  let leader: LeaderContext | undefined;
  let atEnd: unknown;
  const { store, run, stop, holder, metric, renewals, nodes } = await controller(t, {
    one: async (given) => {
      leader = given;
      await given.caches.ready(given.signal);
      const body = { metadata: { labels: { seen: 'yes' } } };
      await given.client.patch(`${podsPath}/a`, { type: 'merge', body }, { signal: given.signal });
      recordSeen(given);
      t.ok(nodes());
      t.ok(await metric('archwright_controller_leading 1'));
      t.ok(await metric(`${resources} 1`));
      stop.abort('SIGTERM');
      await until(given.signal);
      atEnd = holder();
    },
    two: ({ signal }) => until(signal),
  });
  store.put(`${podsPath}/a`, { spec: { nodeName: 'n', containers: [] } });
  store.put('/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs/a', { spec: { priority: 1 } });
  t.equal(await run(), 'stopped');
  like(t, store.get(`${podsPath}/a`), { metadata: { labels: { seen: 'yes' } } });
  t.equal(store.list(eventsPath).length, 1, 'recorded events are written before the end');
  t.equal(nodes(), undefined, 'the fleet no longer uses its nodes');
  t.equal(atEnd, 'pod-a_1', 'the Lease is held while features end');
  t.equal(holder(), '', 'then it is released');
  t.strictSame([...renewals], [leasePath], 'renewals have a client of their own');
  t.ok(await metric('archwright_controller_leading 0'));
  t.ok(await metric(`${resources} 0`), 'gauges of a leader end with its term');
  const policy = leader?.policies.policyOf({ namespace: 'shop', namespaceLabels: {}, labels: {} });
  t.equal(policy?.onUnknownImage, 'gate');
  t.ok(Math.abs((leader?.serverNow() ?? 0) - Date.now()) < 60_000, "it follows the API server's clock");
  await store.until(() => store.watches() === 0, 'the watches to end');
});

t.test('a deposed leader cannot write, ends its watches, and becomes a candidate again', async (t) => {
  const terms: LeaderContext[] = [];
  const refused: unknown[] = [];
  const { store, run, stop, holder } = await controller(t, {
    one: async (leader) => {
      terms.push(leader);
      await leader.caches.ready(leader.signal);
      if (terms.length === 2) return stop.abort();
      const renewTime = '2026-01-01T00:00:00.000000Z';
      store.put(leasePath, { spec: { holderIdentity: 'pod-b_1', leaseDurationSeconds: 4, renewTime } });
      await until(leader.signal);
      recordSeen(leader);
      const { signal } = new AbortController();
      refused.push(await leader.client.delete(`${podsPath}/a`, { signal }).catch((error: unknown) => error));
    },
  });
  store.put(`${podsPath}/a`, { spec: { containers: [] } });
  await run();
  like(t, refused, [{ code: 'not-leading' }]);
  t.strictSame(store.list(eventsPath), [], 'its recorded events are not written');
  t.ok(store.get(`${podsPath}/a`));
  t.equal(terms.length, 2);
  t.not(terms[0]?.caches, terms[1]?.caches, 'each term has new caches');
  t.equal(holder(), '');
});

function recordSeen({ events }: LeaderContext): void {
  events.record(
    { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'a' },
    { type: 'Normal', reason: 'Seen', message: 'seen' },
  );
}

t.test(
  'if clean takes over from a leader that is then stopped, recorded events are not written',
  async (t) => {
    const holderIdentity = 'archwright-clean/1';
    const { store, run, stop, holder } = await controller(t, {
      one: async (leader) => {
        await leader.caches.ready(leader.signal);
        store.put(leasePath, { spec: { holderIdentity, leaseDurationSeconds: 15 } });
        await until(leader.signal);
        recordSeen(leader);
        stop.abort();
      },
    });
    t.equal(await run(), 'stopped');
    t.strictSame(store.list(eventsPath), []);
    t.equal(holder(), holderIdentity);
  },
);

t.test('if the Lease expires before a stopped leader ends, its events are not written', async (t) => {
  const { store, run, stop, pass } = await controller(t, {
    one: (leader) => {
      stop.abort();
      pass(10_000);
      recordSeen(leader);
      return Promise.resolve();
    },
  });
  t.equal(await run(), 'stopped');
  t.strictSame(store.list(eventsPath), []);
});

t.test('the Lease is released even if a feature does not end', async (t) => {
  const { run, stop, holder, logged, letEndSlowly } = await controller(t, {
    stuck: () => {
      letEndSlowly();
      stop.abort();
      return new Promise(() => undefined);
    },
  });
  t.equal(await run(), 'stopped');
  t.equal(holder(), '');
  t.match(logged.join(''), /did not end in time/);
});

t.test('log and metrics name each feature', (t) => {
  const names = features.map(({ name }) => name);
  t.strictSame(names.toSorted(), [
    'agent-certificates',
    'agent-nodes',
    'amd64-levels',
    'certificates',
    'credential-problems',
    'custom-resources',
    'drift',
    'exec-format',
    'gates',
    'misplaced-pods',
    'program-errors',
    'rollouts',
    'running-images',
    'taints',
    'webhook-configuration',
  ]);
  t.end();
});
