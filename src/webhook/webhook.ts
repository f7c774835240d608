/**
 * The admission webhook as a running server: `app.ts` reads a request, `mutate.ts` routes it by kind and
 * operation, `placement-of-pod.ts` looks up its images and decides, and the answer has the patch.
 *
 * Start: listen, fill the cache with the facts that the agents share, wait for the cluster's watches, be ready.
 * End: be not ready, give the Service time to notice, drain.
 */
import type { Fleet } from '../fleet/fleet.ts';
import type { FactsCache } from '../images/cache/cache.ts';
import type { RequestOf } from '../images/facts/facts.ts';
import type { BrokenImages } from '../images/sources/broken-images.ts';
import type { Policies } from '../policy/effective/policies.ts';
import type { Checks } from '../serving/health.ts';
import { startServer, type ServerLimits, type ServerTls } from '../serving/server.ts';
import { systemClock, type Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { plainPaths, type AdmissionPaths } from './admission-paths.ts';
import { createApp } from './app.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { createFactsOfPod, type FactsOfPodOptions } from '../cluster/facts-of-pod.ts';
import { bindCounters } from './metrics.ts';
import { Mutator } from './mutate.ts';
import { sealsBy } from '../cluster/record-seal.ts';
import { createPullSecrets } from '../cluster/pull-secrets.ts';
import type { NodeHostnames } from '../cluster/nodes.ts';
import { createPullableNodes } from '../cluster/pullable-nodes.ts';

export interface WebhookOptions {
  readonly listen: string;
  /** Its certificate: a directory, or where else it is. */
  readonly tls: ServerTls['source'];
  /** Requires a client certificate of an authority in this file for reviews. */
  readonly clientCaFile?: string | undefined;
  /** Where reviews are taken. Default: the plain paths. Closed by the caller. */
  readonly paths?: AdmissionPaths | undefined;
  /** How long an admission waits for images that the cache does not have, milliseconds. */
  readonly inlineBudgetMs: () => number;
  /** The policy of each pod now; read once for each request. */
  readonly policies: Policies;
  /** Resolves when what the policies depend on is known for the first time. */
  readonly policiesReady?: (signal: AbortSignal) => Promise<unknown>;
  readonly cache: FactsOfPodOptions['cache'] & Pick<FactsCache, 'learn'>;
  readonly requestOf: RequestOf;
  readonly fleet?: Fleet | undefined;
  readonly broken?: BrokenImages | undefined;
  readonly cluster?: Cluster | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  readonly limits?: Partial<ServerLimits>;
  readonly bodyTimeoutMs?: number;
  readonly warmUpMs?: number;
}

/** Agents answer within milliseconds; a fleet that cannot is no reason to start later than this. */
const defaultWarmUpMs = 10_000;

/** kube-proxy and the API server's own resolver follow an EndpointSlice within a second or two. */
const defaultNoticeMs = 5000;

/** timeoutSeconds of a webhook is at most 30, and here far below; the kubelet kills after 30 s in all. */
const defaultGraceMs = 15_000;

/** Resolves when it listens. @throws ServingError if it cannot listen, or its TLS files cannot be used */
export async function startWebhook(options: WebhookOptions) {
  const { cluster, fleet, cache, requestOf, log, metrics, clock = systemClock, paths = plainPaths } = options;
  const counters = bindCounters(metrics);
  let phase: 'starting' | 'ready' | 'stopping' = 'starting';
  const checks: Checks = {
    'warm-up': () => (phase === 'starting' ? 'the cache is being filled' : undefined),
    path: () => paths.problem(),
    shutdown: () => (phase === 'stopping' ? 'the webhook is stopping' : undefined),
  };

  const { policies, broken } = options;
  const pullSecrets = createPullSecrets({ cluster, clock, metrics, log });
  const common = { requestOf, pullSecrets, clock, log };
  const onWait = (isAnswered: boolean): void => counters.waited(isAnswered ? 'answered' : 'expired');
  const nodeHostnames: NodeHostnames = (node) => cluster?.nodeHostnames(node) ?? [node];
  const nodeClasses = cluster?.nodeClasses(fleet && (() => fleet.nodeReports()));
  fleet?.useNodes(nodeClasses);
  const mutator = new Mutator({
    sources: {
      policies,
      namespaceLabels: (namespace) => cluster?.namespaceLabels(namespace) ?? {},
      nodeArchitecture: cluster && ((node) => cluster.nodeArchitecture(node)),
      nodeClasses,
      factsOfPod: createFactsOfPod({ ...common, cache, onWait, broken }),
      pullableNodes: fleet && createPullableNodes({ ...common, fleet, nodeHostnames }),
      clock,
    },
    counters,
    sealOf: paths.recordKey && sealsBy(paths.recordKey),
    log,
  });
  const { inlineBudgetMs, bodyTimeoutMs, clientCaFile } = options;
  const needsCertificate = clientCaFile !== undefined;
  const app = createApp({
    mutator,
    paths,
    needsCertificate,
    counters,
    clock,
    log,
    inlineBudgetMs,
    ready: checks,
    bodyTimeoutMs,
  });
  const handle = app.callback();
  const server = await startServer({
    listen: options.listen,
    handler: (request, response) => void handle(request, response),
    tls: { source: options.tls, clientCaFile },
    log,
    metrics,
    clock,
    ...(options.limits && { limits: options.limits }),
  });
  log.info({ url: server.url }, 'the webhook is listening');

  /** Everything that a decision depends on, within one time limit. */
  async function becomeReady(): Promise<void> {
    const patience = AbortSignal.timeout(options.warmUpMs ?? defaultWarmUpMs);
    const orWarn = (ready: Promise<unknown> | undefined, message: string): Promise<unknown> | undefined =>
      ready?.catch((error: unknown) => log.warn({ err: error }, message));
    await Promise.all([
      orWarn(options.policiesReady?.(patience), 'custom resources not listed yet; treating them as absent'),
      orWarn(
        cluster?.ready(patience),
        'namespaces and nodes not listed yet; treating namespaces as unlabeled',
      ),
      fleet && warmUp(fleet, patience),
    ]);
    if (phase === 'starting') phase = 'ready';
  }

  /**
   * Fills the cache with the facts that the agents share, so that a rollout asks no registry again. Never
   * fails: the webhook works, slower, with an empty cache too.
   */
  async function warmUp(agents: Fleet, signal: AbortSignal): Promise<void> {
    const started = clock.monotonic();
    let learned = 0;
    try {
      await agents.readShared((facts) => {
        cache.learn(facts);
        learned += 1;
      }, signal);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'not all agents could share their image facts');
    }
    const durationMs = Math.round(clock.monotonic() - started);
    log.info({ learned, durationMs, complete: !signal.aborted }, 'the cache is warm');
  }

  return {
    url: server.url,
    port: server.port,
    checks,
    /** Resolves when it is ready for requests; it answers before that too. */
    ready: becomeReady(),
    /**
     * Ends without losing a request. Does not close cache, fleet and cluster. `noticeMs`: how long the
     * Service may take to send requests elsewhere. `graceMs`: how long requests under way may take after
     * that.
     */
    stop: async ({ noticeMs = defaultNoticeMs, graceMs = defaultGraceMs } = {}): Promise<void> => {
      phase = 'stopping';
      if (noticeMs > 0) await clock.sleep(noticeMs, new AbortController().signal);
      await server.drain(graceMs);
      log.info('the webhook has stopped');
    },
  };
}
