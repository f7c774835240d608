/** Metrics of requests to the API server, of watches and of events. */
import type { Counter, Metrics, MetricSpec } from '../telemetry/metrics.ts';
import { KubeError } from './api/errors.ts';

/** Label values of watched resources. */
const resources = [
  'pods',
  'nodes',
  'namespaces',
  'endpointslices',
  'leases',
  'clusterpodplacementconfigs',
  'podplacementconfigs',
  'other',
] as const;

const requests: MetricSpec = {
  name: 'archwright_kube_requests_total',
  type: 'counter',
  help: 'Requests to the API server, by the class of its answer; `none`: no answer came.',
  labels: {
    verb: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    code: ['2xx', '3xx', '401', '403', '404', '409', '410', '422', '429', '4xx', '5xx', 'none'],
  },
};

const watchRestarts: MetricSpec = {
  name: 'archwright_kube_watch_restarts_total',
  type: 'counter',
  help: 'Watches that were opened again, by why the one before ended; `ended`: by the server, as every few minutes.',
  labels: { resource: resources, reason: ['ended', 'gone', 'refused', 'timeout', 'unavailable', 'other'] },
};

const watchStates = ['starting', 'open', 'broken', 'absent'] as const;
export type WatchState = (typeof watchStates)[number];

const watches: MetricSpec = {
  name: 'archwright_kube_watches',
  type: 'gauge',
  help: 'Watches by their state: `starting` without a first list, `open`, `broken` and being opened again, or `absent`: the kind is not installed.',
  labels: { resource: resources, state: watchStates },
};

const events: MetricSpec = {
  name: 'archwright_events_total',
  type: 'counter',
  help: 'Kubernetes events: written, counted up on an existing one, or lost: too many for the object (limited), queue full (dropped), refused by the API server (failed).',
  labels: { outcome: ['written', 'counted', 'limited', 'dropped', 'failed'] },
};

export const kubeMetrics: readonly MetricSpec[] = [requests, watchRestarts, watches, events];

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete';

/** Counts requests. `status`: `undefined` if no answer came. */
export type RequestCounter = (verb: Verb, status: number | undefined) => void;

/** Makes the counter of a client; without metrics it counts nothing. */
export function requestCounter(metrics: Metrics | undefined): RequestCounter {
  if (metrics === undefined) return () => undefined;
  const bound = new Map<string, Counter>();
  return (verb, status) => {
    const code = classOf(status);
    const key = `${verb} ${code}`;
    const count = bound.get(key) ?? metrics.counter(requests, { verb, code });
    bound.set(key, count);
    count.inc();
  };
}

const ownClass: ReadonlySet<number> = new Set([401, 403, 404, 409, 410, 422, 429]);

function classOf(status: number | undefined): string {
  if (status === undefined) return 'none';
  return ownClass.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}

export interface WatchMetrics {
  /** A watch ended; without an error the server ended it. */
  restarted(error?: unknown): void;
  /** The watch is not counted any more. */
  stop(): void;
}

/** The watches that each set of metrics counts; several may watch one resource. */
const counted = new WeakMap<Metrics, Set<{ readonly resource: string; readonly state: () => WatchState }>>();

/** Makes the metrics of one watch. `path`: of its collection. `state` is called before each scrape. */
export function watchMetrics(
  metrics: Metrics | undefined,
  path: string,
  state: () => WatchState,
): WatchMetrics {
  if (metrics === undefined) return { restarted: () => undefined, stop: () => undefined };
  const last = path.split('/').at(-1) ?? '';
  const resource = resources.find((each) => each === last) ?? 'other';
  const all = counted.get(metrics) ?? countAll(metrics);
  const entry = { resource, state };
  all.add(entry);
  return {
    restarted: (error) => metrics.counter(watchRestarts, { resource, reason: reasonOf(error) }).inc(),
    stop: () => {
      all.delete(entry);
    },
  };
}

function countAll(metrics: Metrics): Set<{ readonly resource: string; readonly state: () => WatchState }> {
  const all = new Set<{ readonly resource: string; readonly state: () => WatchState }>();
  counted.set(metrics, all);
  metrics.beforeScrape(() => {
    for (const resource of resources) {
      for (const state of watchStates) {
        const count = [...all].filter((each) => each.resource === resource && each.state() === state).length;
        metrics.gauge(watches, { resource, state }).set(count);
      }
    }
  });
  return all;
}

function reasonOf(error: unknown): string {
  if (error === undefined) return 'ended';
  if (!(error instanceof KubeError)) return 'other';
  if (error.code === 'unauthorized' || error.code === 'forbidden') return 'refused';
  return error.code === 'too-many-requests' ? 'unavailable' : error.code;
}

export type EventOutcome = 'written' | 'counted' | 'limited' | 'dropped' | 'failed';

/** Makes the counter of an event recorder; without metrics it counts nothing. */
export function eventCounter(metrics: Metrics | undefined): (outcome: EventOutcome) => void {
  return (outcome) => metrics?.counter(events, { outcome }).inc();
}
