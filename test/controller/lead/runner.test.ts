import t from 'tap';
import type { Feature, LeaderContext, ReconcileResult, Work } from '../../../src/controller/lead/feature.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { recordingLog, seriesOf } from '../../support/captured.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';
import { lead } from '../leader.ts';

const minute = 60_000;

function world() {
  const end = new AbortController();
  const { log, lines: logged } = recordingLog();
  const clock = createFakeClock(() => 1);
  const metrics = createMetrics();
  const leader = {
    signal: end.signal,
    caches: { ready: () => Promise.resolve() },
    configuration: defaultConfiguration,
    clock,
    log,
    metrics,
  } as unknown as LeaderContext;
  return {
    clock,
    end,
    logged,
    series: (name: string) => seriesOf(metrics, name),
    render: () => metrics.render(),
    run: (feature: Omit<Feature, 'name'>) => lead({ name: 'gates', ...feature }, leader),
  };
}

const idle: Work = { keys: () => [], reconcile: () => Promise.resolve() };

/** Runs a feature with one key. `script` returns the results of its reconciles. */
function reconciling(
  script: (count: number, signal: AbortSignal) => Promise<ReconcileResult>,
  more: Partial<Feature> = {},
) {
  const { clock, end, run, series } = world();
  const at: number[] = [];
  const begin = clock.monotonic();
  let add = (): void => undefined;
  const running = run({
    backOff: { firstMs: 1000, mostMs: minute },
    ...more,
    start: (_, enqueue) => {
      add = () => enqueue('all');
      return {
        keys: () => ['all'],
        reconcile: (_key, signal) => {
          at.push(clock.monotonic() - begin);
          return script(at.length, signal);
        },
      };
    },
  });
  return {
    clock,
    at,
    series,
    add: () => add(),
    end: async () => {
      end.abort(new Error('end'));
      await running;
    },
  };
}

t.test('it reconciles at the requested time, or after an event', async (t) => {
  const again = (count: number) => Promise.resolve(count === 1 ? { requeueAfterMs: 5 } : undefined);
  const { clock, add, at, end } = reconciling(again, { resyncMs: 10_000 });
  await clock.advance(25_000);
  t.strictSame(at, [0, 5, 10_005, 20_005], 'the requested time takes precedence over the resync');
  for (let event = 0; event < 4; event += 1) add();
  await clock.advance(1000);
  t.strictSame(at.slice(4), [25_000, 25_000], 'events during a reconcile cause one more');
  await end();
  t.equal(clock.pending, 0);
});

t.test('failed reconciles back off up to a limit; a success resets the back-off', async (t) => {
  const { clock, at, series, end } = reconciling(
    (count) =>
      count === 4 || count > 12
        ? Promise.resolve(undefined)
        : Promise.reject(new KubeError('forbidden', 'GET /x', 'not yours')),
    { resyncMs: minute },
  );
  await clock.advance(20 * minute);
  const pauses = at.slice(0, 14).map((each, index) => (each - (at[index - 1] ?? 0)) / 1000);
  t.strictSame(pauses, [0, 1, 2, 4, 60, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  const reconciles = 'archwright_controller_reconciles_total{feature="gates",result=';
  t.equal(await series(`${reconciles}"error"}`), 11);
  t.equal(await series(`${reconciles}"success"}`), at.length - 11);
  await end();
});

t.test('two writers that correct each other slow down', async (t) => {
  const { clock, add, at, end } = reconciling(() => {
    // The other writer reverts each write.
    queueMicrotask(add);
    return Promise.resolve({ wrote: true });
  });
  await clock.advance(60 * minute);
  t.ok(at.length < 80, `${at.length} reconciles in an hour`);
  t.ok(at.length > 50);
  await end();
  t.equal(clock.pending, 0, 'stopping cancels the pause');
});

t.test('a failed feature is restarted with back-off', async (t) => {
  const { run, end, clock, series, logged } = world();
  const at: number[] = [];
  const begin = clock.monotonic();
  const running = run({
    start: () => {
      at.push(clock.monotonic() - begin);
      const error = new Error('a defect');
      // A feature that throws synchronously fails in the same way.
      if (at.length % 2 === 0) throw error;
      return Promise.reject(error);
    },
  });
  await clock.advance(1_500_000);
  const pauses = at.slice(1).map((each, index) => each - (at[index] ?? 0));
  t.strictSame(pauses.slice(0, 4), [1000, 2000, 4000, 8000]);
  t.strictSame(pauses.slice(-2), [300_000, 300_000]);
  t.equal(await series('archwright_controller_feature_failures_total{feature="gates"}'), at.length);
  like(t, logged[0], { level: 'error', feature: 'gates', err: { message: 'a defect' } });
  end.abort(new Error('end'));
  await running;
});

t.test('a long run without failure resets the back-off', async (t) => {
  const { run, end, clock } = world();
  const at: number[] = [];
  const running = run({
    start: async () => {
      at.push(clock.monotonic());
      if (at.length === 3) await clock.sleep(600_000, end.signal);
      throw new Error('a defect');
    },
  });
  await clock.advance(606_000);
  t.strictSame(
    at.slice(1).map((each, index) => each - (at[index] ?? 0)),
    [1000, 2000, 601_000, 2000],
  );
  end.abort(new Error('end'));
  await running;
});

t.test('a failure because the term ends is no defect', async (t) => {
  const { run, end, series, logged } = world();
  const start = (): never => {
    end.abort(new Error('end'));
    throw new Error('a request was aborted');
  };
  await run({ start });
  t.equal(await series('archwright_controller_feature_failures_total{feature="gates"}'), 0);
  t.strictSame(logged, []);
});

t.test('the settings may turn a feature off', async (t) => {
  await world().run({ isOn: () => false, start: () => t.fail('it starts') as never });
});

t.test('events of a failed run add no keys to the next one, and its signal is aborted', async (t) => {
  const { run, end, clock } = world();
  const reconciled: string[] = [];
  const signals: AbortSignal[] = [];
  const adds: (() => void)[] = [];
  let closed = 0;
  const running = run({
    start: ({ signal }, enqueue) => {
      signals.push(signal);
      const number = signals.length;
      adds.push(() => enqueue(`run ${number}`));
      if (number === 1) throw new Error('a defect');
      return {
        keys: () => [],
        reconcile: async (key) => void reconciled.push(key),
        close: () => void (closed += 1),
      };
    },
  });
  await clock.advance(1000);
  for (const add of adds) add();
  await clock.advance(0);
  t.strictSame(reconciled, ['run 2']);
  t.strictSame(
    signals.map(({ aborted }) => aborted),
    [true, false],
  );
  t.equal(closed, 0);
  end.abort(new Error('end'));
  await running;
  t.equal(closed, 1);
});

t.test('gauges of a run end with it', async (t) => {
  const { run, end, clock, render } = world();
  const gauge = { name: 'shown', type: 'gauge', help: 'Of the test.' } as const;
  let runs = 0;
  const running = run({
    start: async ({ metrics }) => {
      runs += 1;
      const number = runs;
      t.match(await render(), /^shown 0$|^$/m, 'no value of the previous run');
      metrics.gauge(gauge).set(number);
      t.match(await render(), new RegExp(`^shown ${number}$`, 'm'));
      if (number === 1) throw new Error('injected failure');
      return idle;
    },
  });
  await clock.advance(1000);
  end.abort(new Error('end'));
  await running;
  t.match(await render(), /^shown 0$/m);
});
