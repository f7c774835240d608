import t from 'tap';
import type { Reflector, Change } from '../../../src/kube/watch/reflector.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { startCaches, watchNames } from '../../../src/controller/state/caches.ts';
import type { Feature, Leading } from '../../../src/controller/lead/leading.ts';
import { supervise } from '../../../src/controller/lead/supervise.ts';
import { noTimers } from '../../support/fake-clock.ts';
import { connectedStore } from '../../kube/support.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { until } from '../../support/until.ts';
import { recordingLog } from '../../support/captured.ts';

/** A reflector whose events a test sends. */
function reflector<T>() {
  const listeners: (() => void)[] = [];
  const each: ((change: Change<T>) => void)[] = [];
  const made: Reflector<T> = {
    get: () => undefined,
    values: () => [],
    ready: () => Promise.resolve(),
    onChange: (listener) => void listeners.push(listener),
    onEach: (listener) => void each.push(listener),
    size: 7,
    refused: 0,
    health: () => ({ synced: true, watching: true }),
    stop: () => undefined,
  };
  const tell = (): void => {
    for (const listener of listeners) listener();
    for (const listener of each)
      listener({ namespace: '', name: 'x', object: undefined, previous: undefined });
  };
  return { made, tell };
}

function world() {
  const end = new AbortController();
  const nodes = reflector<never>();
  const { log, lines: logged } = recordingLog();
  const pauses: number[] = [];
  let now = 0;
  let failures = 0;
  const metrics = createMetrics();
  const reflectors = Object.fromEntries(watchNames.map((name) => [name, reflector<never>().made]));
  const leading = {
    metrics,
    signal: end.signal,
    caches: { ...reflectors, nodes: nodes.made, ready: () => Promise.resolve(), stop: () => undefined },
    clock: {
      ...noTimers,
      now: () => now,
      monotonic: () => now,
      random: () => 1,
      sleep: (ms: number) => Promise.resolve(void pauses.push(ms)),
    },
    log,
  } as unknown as Leading;
  return {
    end,
    leading,
    nodes,
    logged,
    pauses,
    failures: () => failures,
    render: () => metrics.render(),
    pass: (ms: number) => (now += ms),
    run: (feature: Feature) =>
      supervise({ name: 'gates', feature, leading, failures: { inc: () => (failures += 1) } }),
  };
}

t.test('a failed feature is restarted with back-off', async (t) => {
  const { run, end, pauses, failures, logged } = world();
  let runs = 0;
  await run(() => {
    runs += 1;
    if (runs === 12) end.abort();
    const error = new Error('a defect');
    // A feature that throws synchronously fails in the same way.
    if (runs % 2 === 0) throw error;
    return Promise.reject(error);
  });
  t.equal(runs, 12);
  t.same(pauses.slice(0, 4), [1000, 2000, 4000, 8000]);
  t.same(pauses.slice(-2), [300_000, 300_000]);
  t.equal(failures(), 11, 'a failure after the end does not count');
  t.match(logged[0], { level: 'error', feature: 'gates', err: { message: 'a defect' } });
});

t.test('a long run without failure resets the back-off', async (t) => {
  const { run, end, pauses, pass } = world();
  let runs = 0;
  await run(() => {
    runs += 1;
    if (runs === 3) pass(600_000);
    if (runs === 5) end.abort();
    return Promise.reject(new Error('a defect'));
  });
  t.same(pauses, [1000, 2000, 1000, 2000]);
});

t.test('a feature that returns is not restarted', async (t) => {
  const { run, failures } = world();
  let runs = 0;
  await run(async () => void (runs += 1));
  t.equal(runs, 1);
  t.equal(failures(), 0);
});

t.test('listeners of a failed run are removed, and its signal is aborted', async (t) => {
  const { run, end, nodes } = world();
  const heard: string[] = [];
  const signals: AbortSignal[] = [];
  let runs = 0;
  const running = run(async ({ caches, signal, log }) => {
    runs += 1;
    const name = `run ${runs}`;
    signals.push(signal);
    t.equal(caches.nodes.size, 7);
    t.equal(caches.nodes.health().watching, true);
    t.same([...caches.nodes.values()], []);
    t.equal(caches.nodes.get('', 'x'), undefined);
    await caches.nodes.ready(signal);
    await caches.ready(signal);
    caches.nodes.onChange(() => heard.push(name));
    caches.nodes.onEach(({ name: object }) => heard.push(`${name} ${object}`));
    nodes.tell();
    if (runs === 1) throw new Error('a defect');
    log.info('running');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  await until(() => signals.length === 2, 'the second run');
  t.same(heard, ['run 1', 'run 1 x', 'run 2', 'run 2 x']);
  t.equal(signals[0]?.aborted, true);
  t.equal(signals[1]?.aborted, false);
  end.abort();
  await running;
});

t.test("a run reads the leader's caches", async (t) => {
  const { run, end, leading } = world();
  const { store, client } = await connectedStore(t);
  const { log, metrics } = leading;
  const caches = startCaches({ client, log, metrics, clock: systemClock });
  t.teardown(() => caches.stop());
  Object.assign(leading, { caches });
  store.put('/api/v1/nodes/n', {});
  await run(async ({ caches: shown, signal }) => {
    const { nodes } = shown;
    await shown.ready(signal);
    await nodes.ready(signal);
    t.equal(nodes.size, 1);
    t.equal([...nodes.values()].length, 1);
    t.ok(nodes.get('', 'n'));
    t.equal(nodes.health().synced, true);
    end.abort();
  });
});

t.test('gauges and scrape hooks of a run end with it', async (t) => {
  const { run, end, render } = world();
  const gauge = { name: 'shown', type: 'gauge', help: 'Of the test.' } as const;
  const scrapes: number[] = [];
  let runs = 0;
  await run(async ({ metrics }) => {
    runs += 1;
    const number = runs;
    t.match(await render(), /^shown 0$|^$/m, 'no value of the previous run');
    metrics.gauge(gauge).set(number);
    metrics.beforeScrape(() => void scrapes.push(number));
    t.match(await render(), new RegExp(`^shown ${number}$`, 'm'));
    if (number === 2) return end.abort();
    throw new Error('injected failure');
  });
  t.match(await render(), /^shown 0$/m);
  t.same(scrapes, [1, 2], 'scrape hooks are called only during their run');
});
