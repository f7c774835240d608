/**
 * Metrics of work that ends before the process, such as a leader's: at its end, gauges are reset and callbacks before scrapes are removed.
 */
import type { Gauge, Metrics } from './metrics.ts';

export interface PassingMetrics extends Metrics {
  /** Sets all gauges to 0, except NaN, and removes callbacks before scrapes. Counters stay. */
  end(): void;
}

/** Wraps metrics for work that ends. A gauge may belong to one such work at a time. */
export function passingMetrics(metrics: Metrics): PassingMetrics {
  const ends: (() => void)[] = [];
  let ended = false;
  return {
    counter: (spec, labels) => metrics.counter(spec, labels),
    histogram: (spec, labels) => metrics.histogram(spec, labels),
    gauge: (spec, labels) => {
      const { wrapped, end } = passing(metrics.gauge(spec, labels), () => ended);
      ends.push(end);
      return wrapped;
    },
    beforeScrape: (update) => {
      const stop = metrics.beforeScrape(update);
      if (ended) stop();
      ends.push(stop);
      return stop;
    },
    render: () => metrics.render(),
    contentType: metrics.contentType,
    end: () => {
      ended = true;
      for (const end of ends.splice(0)) end();
    },
  };
}

function passing(
  inner: Gauge,
  hasEnded: () => boolean,
): { readonly wrapped: Gauge; readonly end: () => void } {
  let last = 0;
  return {
    wrapped: {
      set: (value) => {
        if (hasEnded()) return;
        last = value;
        inner.set(value);
      },
    },
    // NaN means "unknown". 0 would be wrong, for example an expired certificate.
    end: () => {
      if (!Number.isNaN(last)) inner.set(0);
    },
  };
}
