/**
 * Metrics of work that ends before the process, such as a leader's: at its end, gauges are reset and
 * callbacks before scrapes are removed.
 */
import type { Gauge, Metrics } from './metrics.ts';

/** Wraps metrics for work that ends. A gauge may belong to one such work at a time. */
export function passingMetrics(metrics: Metrics) {
  const ends: (() => void)[] = [];
  let ended = false;
  return {
    ...metrics,
    gauge: (...[spec, labels]: Parameters<Metrics['gauge']>): Gauge => {
      const gauge = metrics.gauge(spec, labels);
      let last = 0;
      // NaN means "unknown". 0 would be wrong, for example an expired certificate.
      ends.push(() => {
        if (!Number.isNaN(last)) gauge.set(0);
      });
      return {
        set: (value) => {
          if (ended) return;
          last = value;
          gauge.set(value);
        },
      };
    },
    beforeScrape: (update: () => void) => {
      const stop = metrics.beforeScrape(update);
      if (ended) stop();
      ends.push(stop);
      return stop;
    },
    /** Sets all gauges to 0, except NaN, and removes callbacks before scrapes. Counters stay. */
    end: (): void => {
      ended = true;
      for (const end of ends.splice(0)) end();
    },
  };
}
