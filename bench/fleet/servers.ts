/** The servers of the starting cluster. Each appends its close function to a list. */
import { openFleet } from '../../cmd/wiring/fleet.ts';
import { openInspection } from '../../cmd/wiring/inspection.ts';
import { openFactsCache } from '../../cmd/wiring/image-facts.ts';
import { startAgent } from '../../daemon/agent.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { createPolicies } from '../../src/policy/effective/policies.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { startWebhook } from '../../src/webhook/webhook.ts';

const log = createLog({ level: 'error' });
const configuration = { ...defaultConfiguration(), hostRoot: '/nonexistent' };
const policies = createPolicies({ configuration: () => configuration, controllerLeads: () => false });

/** An agent with an empty cache, set up as by `archwright agent`, on a node without credentials. */
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
  const cache = await openFactsCache({
    configuration: () => configuration,
    source: inspection.source,
    log,
    metrics,
  });
  const agent = await startAgent({
    listen: '127.0.0.1:0',
    metricsListen: '127.0.0.1:0',
    tlsDir: tls,
    nodeName,
    version: 'bench',
    cache,
    fingerprint: () => inspection.fingerprint(),
    node: () => ({}),
    problems: () => [],
    log,
    metrics,
  });
  closing.push(
    () => inspection.close(),
    () => cache.close(),
    () => agent.stop(0),
  );
  return agent.url;
}

export interface RunningWebhook {
  readonly url: string;
  readonly cache: { readonly size: number };
  readonly metrics: Metrics;
}

/** A webhook with an empty cache that uses these agents, set up as by `archwright webhook`. */
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
    log,
    metrics,
  });
  if (!open) throw new TypeError('no fleet');
  const { fleet } = open;
  const cache = await openFactsCache({
    configuration: () => configuration,
    source: fleet,
    isFleet: true,
    log,
    metrics,
  });
  const webhook = await startWebhook({
    listen: '127.0.0.1:0',
    tls,
    inlineBudgetMs: () => configuration.inlineBudget,
    policies,
    cache,
    requestOf: createRequestOf(() => configuration, false),
    fleet,
    log,
    metrics,
  });
  closing.push(
    () => open.close(),
    () => cache.close(),
    () => webhook.stop({ noticeMs: 0, graceMs: 0 }),
  );
  await webhook.ready;
  return { url: webhook.url, cache, metrics };
}
