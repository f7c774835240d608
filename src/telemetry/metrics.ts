/**
 * Metrics, by prom-client. Rooms describe their metrics as data (`MetricSpec`), from which
 * `docs/reference/metrics.md` is generated. Each label has a fixed list of values, and other values count as
 * `other`. So pods, images and servers cannot increase the number of series, and every series exists from the
 * start with 0. Children are bound once; counting is one addition.
 */
import * as prom from 'prom-client';

export interface MetricSpec {
  /** Prometheus name with unit: `_total`, `_seconds`, `_bytes`. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Only histograms have buckets. */
  buckets?: readonly number[];
}

type Labels = NonNullable<MetricSpec['labels']>;

export function counter(name: string, help: string, labels?: Labels): MetricSpec {
  return { name, type: 'counter', help, labels };
}

export function gauge(name: string, help: string, labels?: Labels): MetricSpec {
  return { name, type: 'gauge', help, labels };
}

/** @param buckets upper bounds, in the unit of the metric */
export function histogram(name: string, help: string, buckets: readonly number[]): MetricSpec {
  return { name, type: 'histogram', help, buckets };
}

export type Counter = Pick<prom.Counter.Internal, 'inc'>;
export type Gauge = Pick<prom.Gauge.Internal<string>, 'set'>;
export type Histogram = Pick<prom.Histogram.Internal<string>, 'observe'>;

type LabelValues = Readonly<Record<string, string>>;

export type Metrics = ReturnType<typeof createMetrics>;

const other = 'other';

type Metric = prom.Counter | prom.Gauge | prom.Histogram;

/** Makes an empty registry, which all parts of the program share. */
export function createMetrics() {
  const registry = new prom.Registry();
  const known = new Map<string, { readonly spec: string; readonly metric: Metric }>();
  const updates = new Set<() => void>();

  function metricOf(spec: MetricSpec): Metric {
    const identity = JSON.stringify(spec);
    const existing = known.get(spec.name);
    if (existing && existing.spec !== identity) throw new TypeError(`${spec.name} has two descriptions`);
    if (existing) return existing.metric;
    const metric = make(spec, registry);
    known.set(spec.name, { spec: identity, metric });
    for (const labels of combinations(spec)) {
      if (!(metric instanceof prom.Histogram)) metric.labels(labels).inc(0);
    }
    return metric;
  }

  function child(
    type: MetricSpec['type'],
    spec: MetricSpec,
    labels: LabelValues = {},
  ): Counter & Gauge & Histogram {
    const metric = metricOf(spec) as { labels(values: LabelValues): unknown };
    if (spec.type !== type) throw new TypeError(`${spec.name} is not a ${type}`);
    return metric.labels(bounded(spec, labels)) as Counter & Gauge & Histogram;
  }

  return {
    /** The child with these label values. Callers keep it. */
    counter: (spec: MetricSpec, labels?: LabelValues): Counter => child('counter', spec, labels),
    gauge: (spec: MetricSpec, labels?: LabelValues): Gauge => child('gauge', spec, labels),
    histogram: (spec: MetricSpec, labels?: LabelValues): Histogram => child('histogram', spec, labels),
    /** A gauge with one series, always 1. @returns sets its labels, which may have any value */
    info: (spec: MetricSpec) => {
      const gauge = metricOf(spec) as prom.Gauge;
      return (labels: LabelValues): void => {
        gauge.reset();
        gauge.labels(labels).set(1);
      };
    },
    /** Runs before each scrape, to set gauges. @returns cancels it */
    beforeScrape: (update: () => void) => {
      updates.add(update);
      return (): void => void updates.delete(update);
    },
    render: (): Promise<string> => {
      for (const update of updates) update();
      return registry.metrics();
    },
    contentType: registry.contentType as string,
  };
}

/** Counts by the values of one label of a metric. @param others values of its other labels */
export function counts<Value extends string>(
  metrics: Metrics,
  spec: MetricSpec,
  label: string,
  values: readonly Value[],
  others: LabelValues = {},
): (value: Value) => void {
  const children = new Map(
    values.map((value) => [value, metrics.counter(spec, { ...others, [label]: value })]),
  );
  return (value) => children.get(value)?.inc();
}

/**
 * Counts items in all series of a gauge.
 * @returns shows the items that there are now; `labelsOf`: an item counts once in each of its series
 */
export function itemCounts(metrics: Pick<Metrics, 'gauge'>, spec: MetricSpec) {
  const keyOf = (labels: LabelValues): string => Object.values(bounded(spec, labels)).join(' ');
  const series = combinations(spec).map((labels) => [keyOf(labels), metrics.gauge(spec, labels)] as const);
  return <T>(items: Iterable<T>, labelsOf: (item: T) => readonly LabelValues[]): void => {
    const numbers = new Map<string, number>();
    for (const item of items)
      for (const key of new Set(labelsOf(item).map(keyOf))) numbers.set(key, (numbers.get(key) ?? 0) + 1);
    for (const [key, child] of series) child.set(numbers.get(key) ?? 0);
  };
}

function make(spec: MetricSpec, registry: prom.Registry): Metric {
  const base = {
    name: spec.name,
    help: spec.help,
    labelNames: Object.keys(spec.labels ?? {}),
    registers: [registry],
  };
  if (spec.type === 'counter') return new prom.Counter(base);
  if (spec.type === 'gauge') return new prom.Gauge(base);
  return new prom.Histogram({ ...base, ...(spec.buckets && { buckets: [...spec.buckets] }) });
}

function bounded(spec: MetricSpec, labels: LabelValues): Record<string, string> {
  const entries = Object.entries(spec.labels ?? {}).map(([name, values]) => {
    const value = labels[name];
    return [name, value !== undefined && values.includes(value) ? value : other];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}

function combinations(spec: MetricSpec): Record<string, string>[] {
  let rows: Record<string, string>[] = [{}];
  for (const [name, values] of Object.entries(spec.labels ?? {})) {
    rows = rows.flatMap((row) => values.map((value) => ({ ...row, [name]: value })));
  }
  return rows;
}

/** Wraps metrics for work that ends before the process, such as a leader's. A gauge may belong to one at a time. */
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
