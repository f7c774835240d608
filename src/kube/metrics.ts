/** Metrics of requests to the API server, of watches and of events. */
import { counter, gauge, itemCounts, type Metrics, type MetricSpec } from '../telemetry/metrics.ts';
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
  'architecturerollouts',
  'other',
] as const;
const watchStates = ['starting', 'open', 'broken', 'absent'] as const;
export type WatchState = (typeof watchStates)[number];

const specs = {
  requests: counter('archwright_kube_requests_total', 'Requests to the API server. `none`: no answer.', {
    verb: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    code: ['2xx', '3xx', '401', '403', '404', '409', '410', '422', '429', '4xx', '5xx', 'none'],
  }),
  watchRestarts: counter(
    'archwright_kube_watch_restarts_total',
    'Watches opened again, by the reason why the last one ended. `ended`: regularly, every few minutes.',
    { resource: resources, reason: ['ended', 'gone', 'refused', 'timeout', 'unavailable', 'other'] },
  ),
  watches: gauge(
    'archwright_kube_watches',
    'Watches. `starting`: without a first list; `broken`: being reopened; `absent`: the kind is not installed.',
    { resource: resources, state: watchStates },
  ),
  events: counter(
    'archwright_events_total',
    'Events: written, counted on an existing one, or lost: too many for the object (limited), queue full (dropped), refused by the API server (failed).',
    { outcome: ['written', 'counted', 'limited', 'dropped', 'failed'] },
  ),
} satisfies Record<string, MetricSpec>;

export const kubeMetrics: readonly MetricSpec[] = Object.values(specs);

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete';

/** The counter of a client. `status`: `undefined` if no answer came. */
export function requestCounter(metrics?: Metrics): (verb: Verb, status: number | undefined) => void {
  return (verb, status) => metrics?.counter(specs.requests, { verb, code: classOf(status) }).inc();
}

const ownClass: ReadonlySet<number> = new Set([401, 403, 404, 409, 410, 422, 429]);

function classOf(status: number | undefined): string {
  if (status === undefined) return 'none';
  return ownClass.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}

interface CountedWatch {
  readonly resource: string;
  readonly state: () => WatchState;
}

/** The counted watches of each set of metrics; several may watch one resource. */
const counted = new WeakMap<Metrics, Set<CountedWatch>>();

/**
 * Makes the metrics of one watch.
 * @param path of its collection
 * @param state called before each scrape
 * @returns `restarted` counts ends of a watch without a server error; after `stop` nothing is counted
 */
export function watchMetrics(metrics: Metrics | undefined, path: string, state: () => WatchState) {
  const last = path.split('/').at(-1);
  const resource = resources.find((each) => each === last) ?? 'other';
  const all = metrics && (counted.get(metrics) ?? countAll(metrics));
  const entry = { resource, state };
  all?.add(entry);
  return {
    restarted: (error?: unknown) =>
      metrics?.counter(specs.watchRestarts, { resource, reason: reasonOf(error) }).inc(),
    stop: () => void all?.delete(entry),
  };
}

function countAll(metrics: Metrics): Set<CountedWatch> {
  const all = new Set<CountedWatch>();
  counted.set(metrics, all);
  const show = itemCounts(metrics, specs.watches);
  metrics.beforeScrape(() => show(all, ({ resource, state }) => [{ resource, state: state() }]));
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
  return (outcome) => metrics?.counter(specs.events, { outcome }).inc();
}
