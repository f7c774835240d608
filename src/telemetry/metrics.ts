/**
 * Metrics, by prom-client. Rooms describe their metrics as data (`MetricSpec`), from which `docs/reference/metrics.md` is generated. Each
 * label has a fixed list of values, and other values count as `other`. So pods, images and servers cannot increase the number of series,
 * and every series exists from the start with 0. Children are bound once; counting is one addition.
 */
import * as prom from 'prom-client';

export interface MetricSpec {
  /** Prometheus name with unit: `_total`, `_seconds`, `_bytes`. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** HELP text, also in the documentation. */
  help: string;
  /** All values of each label. */
  labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of a histogram, in the unit of the metric. Default: prom-client's, 5 ms to 10 s. */
  buckets?: readonly number[];
}

export interface Counter {
  inc(by?: number): void;
}
export interface Gauge {
  set(value: number): void;
}
export interface Histogram {
  observe(value: number): void;
}

type LabelValues = Readonly<Record<string, string>>;

export interface Metrics {
  /** The child with these label values. Callers keep it. */
  counter(spec: MetricSpec, labels?: LabelValues): Counter;
  gauge(spec: MetricSpec, labels?: LabelValues): Gauge;
  histogram(spec: MetricSpec, labels?: LabelValues): Histogram;
  /**
   * Runs before each scrape, to set gauges.
   * @returns cancels it
   */
  beforeScrape(update: () => void): () => void;
  /** The page in Prometheus text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

const other = 'other';

/** Makes an empty registry, which all parts of the program share. */
export function createMetrics(): Metrics {
  const registry = new prom.Registry();
  const known = new Map<
    string,
    { readonly spec: string; readonly made: prom.Counter | prom.Gauge | prom.Histogram }
  >();
  const updates = new Set<() => void>();

  function metric(spec: MetricSpec): prom.Counter | prom.Gauge | prom.Histogram {
    const identity = JSON.stringify(spec);
    const existing = known.get(spec.name);
    if (existing && existing.spec !== identity) throw new TypeError(`${spec.name} has two descriptions`);
    if (existing) return existing.made;
    const made = make(spec, registry);
    known.set(spec.name, { spec: identity, made });
    for (const labels of combinations(spec)) made.labels(labels);
    if (!(made instanceof prom.Histogram)) for (const labels of combinations(spec)) initialize(made, labels);
    return made;
  }

  return {
    counter: (spec, labels = {}) => {
      const made = metric(spec);
      if (!(made instanceof prom.Counter)) throw new TypeError(`${spec.name} is not a counter`);
      return made.labels(bounded(spec, labels));
    },
    gauge: (spec, labels = {}) => {
      const made = metric(spec);
      if (!(made instanceof prom.Gauge)) throw new TypeError(`${spec.name} is not a gauge`);
      return made.labels(bounded(spec, labels));
    },
    histogram: (spec, labels = {}) => {
      const made = metric(spec);
      if (!(made instanceof prom.Histogram)) throw new TypeError(`${spec.name} is not a histogram`);
      return made.labels(bounded(spec, labels));
    },
    beforeScrape: (update) => {
      updates.add(update);
      return () => void updates.delete(update);
    },
    render: () => {
      for (const update of updates) update();
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
}

function make(spec: MetricSpec, registry: prom.Registry): prom.Counter | prom.Gauge | prom.Histogram {
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

function initialize(made: prom.Counter | prom.Gauge, labels: LabelValues): void {
  if (made instanceof prom.Counter) made.labels(labels).inc(0);
  else made.labels(labels).set(0);
}

function bounded(spec: MetricSpec, labels: LabelValues): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, values] of Object.entries(spec.labels ?? {})) {
    const value = labels[name];
    result[name] = value !== undefined && values.includes(value) ? value : other;
  }
  return result;
}

function combinations(spec: MetricSpec): Record<string, string>[] {
  let rows: Record<string, string>[] = [{}];
  for (const [name, values] of Object.entries(spec.labels ?? {})) {
    rows = rows.flatMap((row) => values.map((value) => ({ ...row, [name]: value })));
  }
  return rows;
}
