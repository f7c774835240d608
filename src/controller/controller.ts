/**
 * The controller does what cannot be done at admission. Replicas elect a leader by a Lease (`lead/candidacy.ts`).
 * The leader runs the features of `features.ts`: one folder each.
 *
 * Features share caches (`state/caches.ts`), an event recorder, and a client that refuses writes after leadership
 * is lost, but no other state: the next leader continues anywhere. `lead/runner.ts` runs
 * each, and restarts one that fails.
 */
import { watchBrokenImages } from '../cluster/config-map.ts';
import { createFactsOfPod, type FactsOfPodOptions } from '../cluster/facts-of-pod.ts';
import { clusterObjects } from '../cluster/cluster.ts';
import { createNodeClasses } from '../cluster/nodes.ts';
import { createPullSecrets } from '../cluster/pull-secrets.ts';
import { sealsBy, watchRecordKey } from '../cluster/record-seal.ts';
import type { KubeClient } from '../kube/api/client.ts';
import { EventRecorder } from '../kube/events/events.ts';
import { fencedClient, leaderWrites } from '../kube/api/fenced.ts';
import {
  usualLeaseTimes,
  type LeaderElectionOptions,
  type LeaseTimes,
} from '../kube/election/leader-election.ts';
import { ownNames } from '../names/keys.ts';
import { createRateLimiter } from '../async/rate-limiter.ts';
import { aborted, limited, unlessAborted } from '../async/wait.ts';
import { createPolicies } from '../policy/effective/policies.ts';
import { collectResources } from '../policy/resources/collection.ts';
import { overlaid } from '../policy/resources/overlay.ts';
import { passingMetrics } from '../telemetry/metrics.ts';
import type { RunningServer } from '../serving/server.ts';
import { startCaches } from './state/caches.ts';
import { liveWebhooks } from './state/webhooks-file.ts';
import { startFactsServer } from '../facts-api/server.ts';
import { runCandidacy } from './lead/candidacy.ts';
import { createEvictor } from './write/evictor.ts';
import type { Feature, LeaderContext } from './lead/feature.ts';
import { leadingLevel, runFeatures } from './lead/runner.ts';
import { RolloutShares } from './features/rollouts/shares.ts';

type OfLeader =
  'namespace' | 'agentServiceAccount' | 'configuration' | 'fleet' | 'requestOf' | 'clock' | 'log' | 'metrics';

/** `configuration` returns the same object until there is another. */
export interface ControllerOptions extends Pick<LeaderContext, OfLeader> {
  readonly client: KubeClient;
  /** The client of the Lease. Default: `client`. Its own connections keep renewals from waiting behind slow changes. */
  readonly leaseClient?: KubeClient;
  /** Unique among all candidates, also among the lives of one pod. */
  readonly identity: string;
  readonly features: readonly Feature[];
  readonly cache: LeaderContext['cache'] & FactsOfPodOptions['cache'];
  /** Ends the controller: features, then recorded events, then the Lease. */
  readonly stop: AbortSignal;
  /** Address for requests for image facts. Default: none are answered. */
  readonly factsListen?: string | undefined;
  /** YAML file with the wanted webhooks. Default: none, and the controller does not write them. */
  readonly webhooksFile?: string | undefined;
  /** Default: `usualLeaseTimes`. */
  readonly leaseTimes?: LeaseTimes;
  /** Limit of writes. Default: `leaderWrites`. */
  readonly writes?: { readonly perSecond: number; readonly burst: number };
}

/** Events that are not written yet are dropped after this. */
const flushMs = 2000;

/** Time for answers under way. Clients can repeat an explanation that is cut off. */
const drainMs = 1000;

/** A feature ends its current step within a request or two. The kubelet kills the process after 30 s. */
const endMs = 5000;

/**
 * Runs the controller until `stop` aborts: a candidate, then the leader, and a candidate again after a loss.
 * @returns `cleaned` as soon as `archwright clean` has removed archwright from the cluster
 * @throws RangeError for times of the Lease that contradict each other
 */
export async function runController(options: ControllerOptions): Promise<'stopped' | 'cleaned'> {
  const { client, namespace, identity, configuration, stop, clock, log } = options;
  const { factsListen, leaseTimes = usualLeaseTimes } = options;
  const shared = openShared(options);
  let facts: RunningServer | undefined;
  try {
    if (factsListen !== undefined) {
      facts = await startFactsServer({
        ...options,
        listen: factsListen,
        factsOfPod: shared.lookups.factsOfPod,
      });
      log.info({ url: facts.url }, 'requests for image facts are answered');
    }
    return await runCandidacy({
      client: options.leaseClient ?? client,
      namespace,
      name: ownNames(configuration()).lease,
      identity,
      times: leaseTimes,
      lead: (...term) => lead(options, shared, ...term),
      stop,
      clock,
      log,
    });
  } finally {
    await facts?.drain(drainMs);
    shared.close();
  }
}

/** Shared by all terms of this replica. */
function openShared(options: ControllerOptions) {
  const { client, namespace, cache, requestOf, configuration, clock, log, metrics } = options;
  const { webhookPathSecret } = configuration();
  const name = ownNames(configuration()).brokenImages;
  const cluster = clusterObjects({ client, log });
  const pullSecrets = createPullSecrets({ cluster, clock, metrics, log });
  const broken = watchBrokenImages({ client, namespace, name, clock, log });
  const recordKey =
    webhookPathSecret === undefined
      ? undefined
      : watchRecordKey({ client, namespace, name: webhookPathSecret, clock, log });
  const factsOfPod = createFactsOfPod({ cache, requestOf, pullSecrets, broken, clock, log });
  return {
    limiter: createRateLimiter({ ...(options.writes ?? leaderWrites), clock }),
    lookups: { pullSecrets, factsOfPod, sealOf: recordKey && sealsBy(recordKey.key) },
    close: () => {
      broken.close();
      recordKey?.close();
    },
  };
}

/** One term: starts caches and features, and ends them when the term ends. */
async function lead(
  options: ControllerOptions,
  { limiter, lookups }: ReturnType<typeof openShared>,
  ...[signal, holds, isOurs]: Parameters<LeaderElectionOptions['lead']>
): Promise<void> {
  const { client, configuration, webhooksFile, fleet, clock, log, metrics } = options;
  const isLeading = metrics.gauge(leadingLevel);
  isLeading.set(1);
  // Gauges of a leader end with its term, whatever its features do.
  const shown = passingMetrics(metrics);
  const caches = startCaches({ client, log, metrics, clock });
  // Events have their own limit. A replica that ends writes its last events; a deposed one writes none.
  const events = new EventRecorder({
    client: fencedClient({ client, holds: isOurs }),
    clock,
    log,
    metrics,
  });
  const webhooks = webhooksFile === undefined ? undefined : await liveWebhooks(webhooksFile, log);
  const { clusterConfigs, podConfigs, rollouts } = caches;
  const resources = collectResources({ clusterConfigs, podConfigs, rollouts, metrics: shown });
  const current = overlaid(configuration, resources);
  const fenced = fencedClient({ client, leading: signal, holds, limiter });
  const nodeClasses = createNodeClasses(caches.nodes, fleet && (() => fleet.nodeReports()));
  fleet?.useNodes(nodeClasses);
  const leader: LeaderContext = {
    ...options,
    ...lookups,
    signal,
    client: fenced,
    events,
    caches,
    webhooks,
    rollouts: new RolloutShares({ client: fenced, caches, signal, clock }),
    evict: createEvictor({ client: fenced, signal, clock, configuration: current }),
    nodeClasses,
    policies: createPolicies({ configuration, controllerLeads: () => true, resources }),
    configuration: current,
    serverNow: () => client.serverNow(),
    metrics: shown,
  };
  try {
    const running = runFeatures(options.features, leader);
    await aborted(signal);
    // A feature that does not end cannot write any more; it must not keep the Lease from being released.
    const ended = (within: AbortSignal) => unlessAborted(running, within);
    await limited(endMs, new AbortController().signal, ended, clock.sleep).catch(() => {
      log.error('a part of the controller did not end in time');
    });
  } finally {
    caches.stop();
    fleet?.useNodes(undefined);
    await webhooks?.close();
    await events.flush(AbortSignal.timeout(flushMs)).catch(() => undefined);
    shown.end();
    isLeading.set(0);
    // A candidate does not watch the custom resource that may set another level.
    log.level = configuration().logLevel;
  }
}
