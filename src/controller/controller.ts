/**
 * The controller: what cannot be done at admission. Replicas elect a leader by a Lease; the leader runs the features below,
 * each in a file or folder of its own, each as one function that works until its signal aborts:
 *
 * - `gates/`: decides the pods that wait behind our scheduling gate.
 * - `taints/`: gives nodes their taint, and running pods their toleration before that.
 * - `misplaced/`: moves pods off nodes whose architecture their images lack.
 * - `exec-format/`: remembers images whose binaries an architecture cannot run.
 * - `certificates/`: issues and rotates certificates; `webhook-configuration/` keeps `caBundle` and the webhooks true.
 * - `resources/`: the status of the custom resources.
 * - `running-images/`: gauges of what runs.
 *
 * They share caches (`caches.ts`), a client that refuses to write once leadership is lost, and an event recorder. They share
 * no other state: a leader that dies in the middle of anything leaves nothing that the next one cannot go on from. A feature
 * that fails is started again by itself (`supervise.ts`). `features.ts` lists them, `candidacy.ts` is the election, `clean/` is
 * how all of it leaves the cluster.
 */
import { watchBrokenImages } from '../cluster/broken-images.ts';
import { createFactsOfPod } from '../cluster/facts-of-pod.ts';
import { clusterObjects } from '../cluster/objects.ts';
import { createPullSecrets } from '../cluster/pull-secrets.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { FactsMemory } from '../images/memory/memory.ts';
import type { KubeClient } from '../kube/api/client.ts';
import { KubeError } from '../kube/api/errors.ts';
import { createEventRecorder } from '../kube/events/events.ts';
import { fencedClient } from '../kube/api/fenced.ts';
import { createRateLimiter } from '../async/rate-limiter.ts';
import { aborted, wait } from '../async/wait.ts';
import type { Configuration } from '../policy/configuration/configuration.ts';
import { createPolicies } from '../policy/effective/policies.ts';
import { collectResources } from '../policy/resources/collection.ts';
import { overlaid } from '../policy/resources/overlay.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { passingMetrics } from '../telemetry/passing-metrics.ts';
import { startCaches } from './caches/caches.ts';
import { runCandidacy } from './leadership/candidacy.ts';
import { bindFactsCounters, featureFailures, leadingLevel } from './leadership/metrics.ts';
import type { Feature, Leading } from './leadership/leading.ts';
import { supervise } from './reconcile/supervise.ts';

export interface ControllerOptions {
  readonly client: KubeClient;
  /**
   * Takes and renews the Lease; `client` where it is absent. With connections of its own: an API server that takes seconds for
   * each of many changes must not cost leadership, because renewals wait behind them.
   */
  readonly leaseClient?: KubeClient;
  /** archwright's own. */
  readonly namespace: string;
  /** Unique among all candidates, also among the lives of one pod. */
  readonly identity: string;
  /** The configuration in force: the same object until there is another. */
  readonly configuration: () => Configuration;
  readonly features: Readonly<Record<string, Feature>>;
  readonly fleet: Fleet | undefined;
  readonly memory: FactsMemory;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Ends the controller: features, then what was recorded of events, then the Lease. */
  readonly stop: AbortSignal;
  /** Hook between steps, for tests; see `Leading`. */
  readonly step?: Leading['step'];
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

/** What is recorded and not yet written is given up after this. */
const flushMs = 2000;

/** A feature ends what it is in the middle of within a request or two; the kubelet kills the process after 30 s. */
const endMs = 5000;

/**
 * Runs the controller until `stop` aborts: a candidate, then the leader, then a candidate again where leadership was lost.
 * @returns `cleaned` as soon as `archwright clean` has removed archwright from the cluster
 * @throws RangeError for times of the Lease that contradict each other
 */
export async function runController(options: ControllerOptions): Promise<'stopped' | 'cleaned'> {
  const { client, configuration, memory, clock, log, metrics, sleep, random } = options;
  const { leaseName, leaseDuration, leaseRenewDeadline, leaseRetryPeriod, ...settings } = configuration();
  const limiter = createRateLimiter({
    perSecond: settings.kubeRequestsPerSecond,
    burst: settings.kubeRequestsBurst,
    clock,
    ...(sleep && { sleep }),
  });
  const pullSecrets = createPullSecrets({
    cluster: clusterObjects({ client, log }),
    keepMs: settings.pullSecretCacheTime,
    clock,
    metrics,
  });
  const broken = watchBrokenImages({
    client,
    namespace: options.namespace,
    name: settings.brokenImagesName,
    clock,
    log,
    ...(sleep && { sleep }),
  });
  const factsOfPod = createFactsOfPod({
    memory,
    pullSecrets,
    counters: bindFactsCounters(metrics),
    broken,
    clock,
    log,
  });
  const isLeading = metrics.gauge(leadingLevel);
  const specOfFailures = featureFailures(Object.keys(options.features));

  async function lead(signal: AbortSignal, holds: () => boolean, isOurs: () => boolean): Promise<void> {
    isLeading.set(1);
    // What a leader shows ends with its leadership, whatever its features do.
    const shown = passingMetrics(metrics);
    const caches = startCaches({ client, log, metrics, ...(sleep && { sleep }) });
    // Who ends writes what was recorded; who was deposed writes nothing more, also when it is told to end after that.
    const events = createEventRecorder({
      client: writingWhile(isOurs, client),
      clock,
      log,
      metrics,
      ...(sleep && { sleep }),
    });
    const leading: Leading = {
      signal,
      client: fencedClient({ client, leading: signal, holds, limiter }),
      events,
      caches,
      fleet: options.fleet,
      memory,
      factsOfPod,
      pullSecrets,
      policies: createPolicies({
        configuration,
        // Who asks leads.
        controllerLeads: () => true,
        clusterConfigs: caches.clusterConfigs,
        podConfigs: caches.podConfigs,
        metrics: shown,
      }),
      configuration: overlaid(configuration, collectResources({ clusterConfigs: caches.clusterConfigs })),
      clock,
      serverNow: () => client.serverNow(),
      log,
      metrics: shown,
      step: options.step ?? (() => undefined),
    };
    try {
      const running = Object.entries(options.features).map(([name, feature]) => {
        const failures = metrics.counter(specOfFailures, { feature: name });
        return supervise({ name, feature, leading, failures, sleep, random });
      });
      await aborted(signal);
      await inTime(Promise.all(running), options);
    } finally {
      caches.stop();
      await events.flush(AbortSignal.timeout(flushMs)).catch(() => undefined);
      shown.end();
      isLeading.set(0);
      // Who does not lead does not watch the object that may say otherwise.
      log.level = configuration().logLevel;
    }
  }

  try {
    return await runCandidacy({
      client: options.leaseClient ?? client,
      namespace: options.namespace,
      name: leaseName,
      identity: options.identity,
      times: {
        leaseDurationMs: leaseDuration,
        renewDeadlineMs: leaseRenewDeadline,
        retryPeriodMs: leaseRetryPeriod,
      },
      lead,
      stop: options.stop,
      clock,
      log,
      ...(sleep && { sleep }),
      ...(random && { random }),
    });
  } finally {
    broken.close();
  }
}

/** Events have a limit of their own, so they do not wait for the one of all writes. */
function writingWhile(mayWrite: () => boolean, client: KubeClient): KubeClient {
  const unless = <T>(where: string, send: () => Promise<T>): Promise<T> =>
    mayWrite()
      ? send()
      : Promise.reject(new KubeError('not-leading', where, `${where}: this replica does not lead any more`));
  return {
    ...client,
    create: (path, object, call) => unless(`POST ${path}`, () => client.create(path, object, call)),
    patch: (path, patch, call) => unless(`PATCH ${path}`, () => client.patch(path, patch, call)),
  };
}

/** A feature that does not end cannot write any more; it must not keep the Lease from being released. */
async function inTime(
  work: Promise<unknown>,
  { log, sleep = wait }: Pick<ControllerOptions, 'log' | 'sleep'>,
): Promise<void> {
  const ended = new AbortController();
  const late = async (): Promise<void> => {
    await sleep(endMs, ended.signal);
    log.error('a part of the controller did not end in time');
  };
  try {
    await Promise.race([work, late()]);
  } finally {
    ended.abort(new Error('ended in time'));
  }
}
