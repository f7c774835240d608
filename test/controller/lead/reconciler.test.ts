import t from 'tap';
import {
  createReconciler,
  createWritePause,
  type ReconcileResult,
} from '../../../src/controller/lead/reconciler.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { silentLog } from '../../support/captured.ts';

const minute = 60_000;

/** A reconciler of one key. `script` returns its results. */
function setup(script: (count: number, signal: AbortSignal) => Promise<ReconcileResult>, resyncMs?: number) {
  const clock = createFakeClock(() => 1);
  const outcomes: string[] = [];
  const ending = new AbortController();
  const at: number[] = [];
  const start = clock.monotonic();
  const reconciler = createReconciler({
    leading: {
      signal: ending.signal,
      clock,
      log: silentLog,
      reconciled: (result) => void outcomes.push(result),
    },
    reconcile: (_key, signal) => {
      at.push(clock.monotonic() - start);
      return script(at.length, signal);
    },
    backOff: { firstMs: 1000, mostMs: minute },
    ...(resyncMs !== undefined && { resyncMs }),
  });
  const running = reconciler.run(['all']);
  const end = async (): Promise<void> => {
    ending.abort(new Error('end'));
    await running;
  };
  return { clock, reconciler, at, outcomes, end };
}

t.test('it reconciles at the requested time, or after an event', async (t) => {
  const { clock, reconciler, at, end } = setup(() => Promise.resolve(undefined), 10_000);
  await clock.advance(25_000);
  t.same(at, [0, 10_000, 20_000]);
  for (let event = 0; event < 4; event += 1) reconciler.add('all');
  await clock.advance(1000);
  t.same(at, [0, 10_000, 20_000, 25_000, 25_000], 'events during a reconcile cause one more');
  await end();
  t.equal(clock.pending, 0);
});

t.test('the requested time takes precedence over the resync', async (t) => {
  const { clock, at, end } = setup(
    (count) => Promise.resolve(count === 1 ? { requeueAfterMs: 5 } : undefined),
    minute,
  );
  await clock.advance(minute);
  t.same(at, [0, 5]);
  await end();
});

t.test('failures back off up to a limit; a success resets the back-off', async (t) => {
  const { clock, at, outcomes, end } = setup(
    (count) =>
      count === 4 || count > 12
        ? Promise.resolve(undefined)
        : Promise.reject(new KubeError('forbidden', 'GET /x', 'not yours')),
    minute,
  );
  await clock.advance(20 * minute);
  const pauses = at.slice(0, 14).map((each, index) => (each - (at[index - 1] ?? 0)) / 1000);
  t.same(pauses, [0, 1, 2, 4, 60, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  t.same(outcomes.slice(0, 5), ['error', 'error', 'error', 'success', 'error']);
  await end();
});

t.test('two writers that correct each other slow down', async (t) => {
  let pause: ReturnType<typeof createWritePause> | undefined;
  const { clock, reconciler, at, end } = setup(async (_count, signal) => {
    // The other writer reverts each write.
    queueMicrotask(() => reconciler.add('all'));
    pause ??= createWritePause(clock);
    await pause(signal);
    return undefined;
  }, minute);
  await clock.advance(60 * minute);
  t.ok(at.length < 80, `${at.length} reconciles in an hour`);
  t.ok(at.length > 50);
  await end();
  t.equal(clock.pending, 0, 'stopping cancels the pause');
});
