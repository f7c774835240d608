/**
 * The contract of all features of the leader: `reconcile(key)` compares actual and desired state, makes the
 * changes, and may return when to run again. It keeps no other state, so a new leader continues anywhere.
 *
 * - A key is a pod, a namespace, or a constant for work that looks at everything at once.
 * - An event adds a key. Several events of a key are one reconcile; an event during a reconcile adds another.
 * - An error causes a retry after a back-off (`WorkQueue`): longer if the API server requires it, at first
 *   quiet for temporary errors and conflicts.
 *
 * A feature adds keys from its caches' listeners, and ends with `await reconciler.run(keys)`.
 */
import { backOffMs, type BackOff } from '../../async/back-off.ts';
import type { Clock } from '../../async/clock.ts';
import { aborted } from '../../async/wait.ts';
import { WorkQueue, type WorkResult } from '../../kube/queue.ts';
import type { Leading } from './leading.ts';

export type ReconcileResult = WorkResult;

interface ReconcilerOptions {
  readonly leading: Pick<Leading, 'signal' | 'clock' | 'log' | 'reconciled'>;
  /** Must be safe to repeat. `signal` aborts when leadership is lost. Any error is retried with back-off. */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>;
  /** Number of keys that are reconciled at the same time. Default: 1. */
  readonly workers?: number;
  /** `requeueAfterMs` of a reconcile that returns none. Default: a key waits for its next event. */
  readonly resyncMs?: number | undefined;
  /** For keys that stand for everything: their writes cause events, so events wait for a back-off's end. */
  readonly inRounds?: boolean;
  /** Default: 250 ms to 60 s. */
  readonly backOff?: BackOff;
}

export interface Reconciler {
  /** Adds a key now, or after a while; before `run`, it waits for that. */
  add(key: string, afterMs?: number): void;
  /** Adds keys, reconciles until leadership is lost, and resolves when all reconciles have ended. */
  run(keys: Iterable<string>): Promise<void>;
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { leading, reconcile, workers = 1, resyncMs, inRounds = false, backOff } = options;
  const { signal, clock, log, reconciled = () => undefined } = leading;
  const queue = new WorkQueue({
    work: async (key, stopping) => {
      const result = await reconcile(key, stopping).catch((error: unknown) => {
        if (!stopping.aborted) reconciled('error');
        throw error;
      });
      reconciled('success');
      return result ?? (resyncMs === undefined ? undefined : { requeueAfterMs: resyncMs });
    },
    workers,
    clock,
    log,
    waitsForBackOff: inRounds,
    backOff,
  });
  return {
    add: (key, afterMs) => queue.add(key, afterMs),
    run: async (keys) => {
      for (const key of keys) queue.add(key);
      queue.start();
      await aborted(signal);
      await queue.stop();
    },
  };
}

/** Repeats one reconcile of everything, from complete caches until leadership is lost. */
export async function reconcileAll(
  leading: Leading,
  reconcile: ReconcilerOptions['reconcile'],
  resyncMs?: number,
): Promise<void> {
  await leading.caches.ready(leading.signal).catch(() => undefined);
  await createReconciler({ leading, reconcile, resyncMs, inRounds: true }).run(['all']);
}

const writePause: BackOff = { firstMs: 100, mostMs: 60_000 };
const forgottenAfterMs = 5 * 60_000;

/**
 * A pause after a reconcile that wrote. Its events then cause one more reconcile, not one each. Two writers
 * that correct each other slow down: the pause doubles with each write, until none was needed for a while.
 */
export function createWritePause(clock: Clock): (signal: AbortSignal) => Promise<void> {
  let writes = 0;
  let lastAt = 0;
  return async (signal) => {
    if (clock.monotonic() - lastAt > forgottenAfterMs) writes = 0;
    lastAt = clock.monotonic();
    writes += 1;
    await clock.sleep(backOffMs(writePause, writes), signal);
  };
}
