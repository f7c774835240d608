/** The servers of the starting cluster. Each appends its close function to a list. */
import { defaultFreshness } from '../../src/images/memory/freshness.ts';
import { openFleet } from '../../cmd/wiring/fleet.ts';
import { openInspection } from '../../cmd/wiring/inspection.ts';
import { openMemory } from '../../cmd/wiring/image-facts.ts';
import { startAgent } from '../../daemon/agent.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { createPolicies } from '../../src/policy/effective/policies.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { startWebhook } from '../../src/webhook/webhook.ts';

const log = createLog({ level: 'error' });
const configuration = { ...defaultConfiguration(), hostRoot: '/nonexistent' };
const policies = createPolicies({ configuration: () => configuration, controllerLeads: () => false });

/** An agent with empty memory, set up as by `archwright agent`, on a node without credentials. */
export async function startOneAgent(
  tls: string,
  nodeName: string,
  closing: (() => unknown)[],
): Promise<string> {
  const metrics = createMetrics();
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs: 'none',
    env: {},
    log,
  });
  const memory = await openMemory({
    configuration: () => configuration,
    inspector: inspection.inspector,
    log,
    metrics,
  });
  const agent = await startAgent({
    listen: '127.0.0.1:0',
    metricsListen: '127.0.0.1:0',
    tlsDir: tls,
    nodeName,
    version: 'bench',
    memory,
    fingerprint: () => inspection.fingerprint(),
    node: () => ({}),
    problems: () => [],
    log,
    metrics,
  });
  closing.push(
    () => inspection.close(),
    () => memory.close(),
    () => agent.stop(0),
  );
  return agent.url;
}

export interface RunningWebhook {
  readonly url: string;
  readonly memory: { readonly size: number };
  readonly metrics: Metrics;
}

/** A webhook with empty memory that uses these agents, set up as by `archwright webhook`. */
export async function startOneWebhook(
  tls: string,
  agentTlsDir: string,
  urls: readonly string[],
  closing: (() => unknown)[],
): Promise<RunningWebhook> {
  const metrics = createMetrics();
  const open = await openFleet({
    agents: urls,
    agentTlsDir,
    client: undefined,
    freshness: defaultFreshness,
    log,
    metrics,
  });
  if (!open) throw new TypeError('no fleet');
  const { fleet } = open;
  const memory = await openMemory({ configuration: () => configuration, inspector: fleet, log, metrics });
  const webhook = await startWebhook({
    listen: '127.0.0.1:0',
    tlsDir: tls,
    inlineBudgetMs: () => configuration.inlineBudget,
    pullSecretCacheMs: configuration.pullSecretCacheTime,
    policies,
    memory,
    fleet,
    log,
    metrics,
  });
  closing.push(
    () => open.close(),
    () => memory.close(),
    () => webhook.stop({ noticeMs: 0, graceMs: 0 }),
  );
  await webhook.ready;
  return { url: webhook.url, memory, metrics };
}
