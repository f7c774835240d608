/**
 * The node agent, one per node. Webhook and controller look up images in it, because it reaches the
 * registries that its node reaches, with the node's credentials.
 *
 * It has two servers. The API (`docs/reference/agent-api.md`) uses mutual TLS: TLS refuses clients without a
 * certificate of the cluster's archwright authority, and `api.ts` refuses clients other than webhook and
 * controller. The agent's own certificate has the name of its node (`certificate/`), or with other issuers
 * `archwright-agent`. Health and metrics have their own port.
 */
import { startServer } from '../src/serving/server.ts';
import { startHealth } from '../src/serving/health.ts';
import { systemClock, type Clock } from '../src/async/clock.ts';
import type { SourceProblem } from '../src/credentials/credential.ts';
import { boundedProblems } from '../src/credentials/problems.ts';
import type { RequestLimit } from '../src/registry/net/docker-hub-limit.ts';
import type { ExecReport } from '../src/nodes/exec-report.ts';
import { resolvesShortNames, type NodeReport } from '../src/nodes/node-report.ts';
import { Api, defaultApiLimits, type ApiLimits, type ApiOptions } from './api/api.ts';

export interface AgentOptions extends Pick<ApiOptions, 'cache' | 'log' | 'metrics'> {
  /** `host:port` of the API. */
  readonly listen: string;
  /** `host:port` of health and metrics. */
  readonly metricsListen: string;
  /** Directory with the certificate of that port. Default: no TLS. */
  readonly metricsTlsDir?: string | undefined;
  /** Directory with `tls.crt`, `tls.key` and `ca.crt`. */
  readonly tlsDir: string;
  readonly nodeName: string;
  readonly version: string;
  /** A hash of the node's credential and endpoint sources; equal for equal content, reveals nothing. */
  readonly fingerprint: () => string;
  /** What the node's runtime, CPU and kernel are, as far as it can be found out. */
  readonly node: () => NodeReport;
  /** Credentials that the node does not use, and why. */
  readonly problems: () => readonly SourceProblem[];
  /** What Docker Hub allows this node, if it said so lately. */
  readonly dockerHubLimit?: () => RequestLimit | undefined;
  /** Programs in containers that the node could not execute. Absent: they are not traced. */
  readonly execErrors?: (() => ExecReport) | undefined;
  /** Resolves when `tlsDir` has a certificate. Health is served before; the agent is not ready. */
  readonly certificate?: () => Promise<void>;
  readonly limits?: Partial<ApiLimits>;
  readonly clock?: Clock;
}

export interface RunningAgent {
  /** `https://host:port` of the API. */
  readonly url: string;
  /** `http://host:port` or `https://host:port` of health and metrics. */
  readonly metricsUrl: string;
  /** Becomes unready, answers open requests, and ends after `graceMs` at the latest. */
  stop(graceMs: number): Promise<void>;
}

/** Resolves when the agent accepts requests. @throws ServingError for the address or the TLS files */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { log, metrics, cache, nodeName, version, clock = systemClock } = options;
  let stopping = false;
  let listening = false;
  const architecture = architectureOf(process.arch);
  const info = () => ({
    nodeName,
    architecture,
    version,
    credentialFingerprint: options.fingerprint(),
    node: options.node(),
    credentialProblems: boundedProblems(options.problems()),
    dockerHub: options.dockerHubLimit?.(),
    execErrors: options.execErrors?.(),
  });
  const handler = new Api({
    cache,
    info,
    resolvesShortNames: () => resolvesShortNames(options.node()),
    limits: { ...defaultApiLimits, ...options.limits },
    clock,
    log,
    metrics,
  }).handler();
  const tls = { source: options.tlsDir, clientAuth: true };
  // Metrics with TLS use the same certificate.
  if (options.metricsTlsDir !== undefined) await options.certificate?.();
  const health = await startHealth({
    listen: options.metricsListen,
    tls: options.metricsTlsDir,
    ready: {
      listening: () => (listening ? undefined : 'the agent API is not listening yet'),
      draining: () => (stopping ? 'the agent is stopping' : undefined),
    },
    log,
    metrics,
  });
  const api = await Promise.resolve(options.certificate?.())
    .then(() => startServer({ listen: options.listen, tls, handler, log, metrics }))
    .catch(async (error: unknown) => {
      await health.drain(0);
      throw error;
    });
  listening = true;
  log.info({ api: api.url, health: health.url, node: nodeName }, 'the agent is listening');

  async function end(graceMs: number): Promise<void> {
    stopping = true;
    await api.drain(graceMs);
    // Probes and scrapes observe the draining, so their server ends last.
    await health.drain(0);
  }
  let ended: Promise<void> | undefined;
  return { url: api.url, metricsUrl: health.url, stop: (graceMs) => (ended ??= end(graceMs)) };
}

/** The node label `kubernetes.io/arch` for Node's name of an architecture. */
export function architectureOf(arch: NodeJS.Architecture): string {
  const names: Partial<Record<NodeJS.Architecture, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
  return names[arch] ?? arch;
}
