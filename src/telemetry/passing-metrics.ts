/**
 * Metrics of work that ends before the program does, such as a leader's: what such work shows by gauges is true of this process
 * only as long as the work goes on, and what it asked to run before each scrape must not be kept for ever.
 */
import type { Gauge, Metrics } from './metrics.ts';

export interface PassingMetrics extends Metrics {
  /** Every gauge shows 0 from here on, or NaN where it did already; nothing runs before scrapes. Counters stay. */
  end(): void;
}

/** The same metrics, for work that ends. Of one gauge, one such work at a time. */
export function passingMetrics(metrics: Metrics): PassingMetrics {
  const ends: (() => void)[] = [];
  let ended = false;
  return {
    counter: (spec, labels) => metrics.counter(spec, labels),
    histogram: (spec, labels) => metrics.histogram(spec, labels),
    gauge: (spec, labels) => {
      const { level, end } = passing(metrics.gauge(spec, labels), () => ended);
      ends.push(end);
      return level;
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

function passing(inner: Gauge, hasEnded: () => boolean): { readonly level: Gauge; readonly end: () => void } {
  let last = 0;
  return {
    level: {
      set: (value) => {
        if (hasEnded()) return;
        last = value;
        inner.set(value);
      },
    },
    // NaN says already that nothing is known, and 0 would be something else: a certificate that is expired.
    end: () => {
      if (!Number.isNaN(last)) inner.set(0);
    },
  };
}
