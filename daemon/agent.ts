/**
 * The node agent: one per node, asked by the webhook and the controller about images, because it can do what its node
 * can: reach the registries that the node reaches, with the credentials that the node has.
 *
 * It has two servers. The API (`docs/reference/agent-api.md`) is for mutual TLS only: TLS itself refuses who has no certificate of the
 * cluster's archwright authority, and `roles.ts` who has one but is neither webhook nor controller. The agent's own certificate names
 * `archwright-agent`; clients verify that name whatever address they dial. Health and metrics have a port without TLS.
 *
 * The agent itself decides nothing and keeps nothing: facts, their freshness and the file on disk are the business of the facts
 * memory that it is given.
 */
import { startServer } from '../src/serving/server.ts';
import { startHealth, type Checks } from '../src/serving/health.ts';
import type { FactsApiOptions } from './api/facts.ts';
import { systemClock, type Clock } from '../src/async/clock.ts';
import type { Log } from '../src/telemetry/log.ts';
import type { Metrics } from '../src/telemetry/metrics.ts';
import { createApi, defaultApiLimits, type ApiLimits } from './api/api.ts';

export interface AgentOptions {
  /** `host:port` of the API. */
  readonly listen: string;
  /** `host:port` of health and metrics. */
  readonly metricsListen: string;
  /** Directory with `tls.crt`, `tls.key` and `ca.crt`. */
  readonly tlsDir: string;
  readonly nodeName: string;
  /** Of the program. */
  readonly version: string;
  /** Closed by who made it, after `stop`. */
  readonly memory: FactsApiOptions['memory'];
  /** A hash over the credential and endpoint sources of the node; equal for equal content, reveals nothing. */
  readonly fingerprint: () => string;
  /** What else has to be there before the agent is ready. */
  readonly ready?: Checks;
  readonly limits?: Partial<ApiLimits>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock?: Clock;
}

export interface RunningAgent {
  /** `https://host:port` of the API. */
  readonly url: string;
  /** `http://host:port` of health and metrics. */
  readonly metricsUrl: string;
  /** Says that it is not ready any more, answers what is in flight, and ends after `graceMs` at the latest. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Starts the agent and resolves when it can be asked.
 * @throws ServingError where an address or the TLS files cannot be used
 */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { log, metrics } = options;
  let stopping = false;
  const handler = createApi({
    memory: options.memory,
    info: () => ({
      nodeName: options.nodeName,
      architecture: architectureOf(process.arch),
      version: options.version,
      credentialFingerprint: options.fingerprint(),
    }),
    limits: { ...defaultApiLimits, ...options.limits },
    clock: options.clock ?? systemClock,
    log,
    metrics,
  });
  const api = await startServer({
    listen: options.listen,
    tls: { dir: options.tlsDir, clientAuth: true },
    handler,
    log,
    metrics,
  });
  const health = await startHealth({
    listen: options.metricsListen,
    ready: { ...options.ready, draining: () => (stopping ? 'the agent is stopping' : undefined) },
    log,
    metrics,
  }).catch(async (error: unknown) => {
    await api.drain(0);
    throw error;
  });
  log.info({ api: api.url, health: health.url, node: options.nodeName }, 'the agent is listening');

  async function end(graceMs: number): Promise<void> {
    stopping = true;
    await api.drain(graceMs);
    // Probes and scrapes see the end of the draining, so their server goes last.
    await health.drain(0);
  }
  let ended: Promise<void> | undefined;
  return { url: api.url, metricsUrl: health.url, stop: (graceMs) => (ended ??= end(graceMs)) };
}

/** The value of the node label `kubernetes.io/arch` for what Node.js calls its architecture. */
export function architectureOf(arch: NodeJS.Architecture): string {
  const names: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
  return names[arch] ?? arch;
}
