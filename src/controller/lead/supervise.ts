/**
 * Restarts a feature that rejects, after a back-off. Only a defect outside of its reconciles makes it reject.
 * The defect is logged and counted. Other features are not affected.
 */
import { backOffMs } from '../../async/back-off.ts';
import type { Reflector } from '../../kube/watch/reflector.ts';
import type { Counter } from '../../telemetry/metrics.ts';
import { passingMetrics } from '../../telemetry/passing-metrics.ts';
import { watchNames, type Caches } from '../state/caches.ts';
import type { Feature, Leading } from './leading.ts';

interface Supervision {
  readonly name: string;
  readonly feature: Feature;
  readonly leading: Leading;
  readonly failures: Counter;
}

const backOff = { firstMs: 1000, mostMs: 5 * 60_000 };
/** A feature that worked this long starts with the first pause again. */
const soundMs = 10 * 60_000;

/** Runs a feature until leadership ends; never rejects. */
export async function supervise({ name, feature, leading, failures }: Supervision): Promise<void> {
  const { signal, clock } = leading;
  const log = leading.log.child({ feature: name });
  let inRow = 0;
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    // Listeners and loops of a failed run end with its own signal.
    const run = new AbortController();
    const metrics = passingMetrics(leading.metrics);
    try {
      await feature({
        ...leading,
        log,
        metrics,
        signal: AbortSignal.any([signal, run.signal]),
        caches: cachesUntil(leading.caches, run.signal),
      });
      return;
    } catch (error) {
      if (signal.aborted) return;
      failures.inc();
      inRow = clock.monotonic() - startedAt >= soundMs ? 1 : inRow + 1;
      const pauseMs = backOffMs(backOff, inRow, clock.random);
      log.error({ err: error, pauseMs }, 'a part of the controller failed and will be started again');
      run.abort(new Error('this run of the feature failed'));
      // Its gauges are not true any more during the pause.
      metrics.end();
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    } finally {
      metrics.end();
    }
  }
}

/** The same caches; their listeners are not called after the signal has aborted. */
function cachesUntil(caches: Caches, signal: AbortSignal): Caches {
  // Its methods need the reflector itself as `this`, because its fields are private.
  const until = <T>(reflector: Reflector<T>): Reflector<T> => ({
    get: (namespace, name) => reflector.get(namespace, name),
    values: (namespace) => reflector.values(namespace),
    ready: (waiting) => reflector.ready(waiting),
    onChange: (listener) => reflector.onChange(() => signal.aborted || listener()),
    onEach: (listener) => reflector.onEach((change) => signal.aborted || listener(change)),
    get size() {
      return reflector.size;
    },
    get refused() {
      return reflector.refused;
    },
    health: () => reflector.health(),
    stop: () => reflector.stop(),
  });
  const wrapped = watchNames.map((name) => [name, until<unknown>(caches[name])]);
  return { ...caches, ...Object.fromEntries(wrapped) } as Caches;
}
