/** The measured webhook: the real one, with the images of the sample in memory. */
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import { defaultCacheTimes } from '../../test/support/facts.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { createPolicies } from '../../src/policy/effective/policies.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { startWebhook } from '../../src/webhook/webhook.ts';
import { serveMeasured } from '../support/child.ts';
import { images } from './sample.ts';

const { tlsDir } = JSON.parse(process.argv[2] ?? '{}') as { tlsDir: string };
const configuration = defaultConfiguration();
const policies = createPolicies({ configuration: () => configuration, controllerLeads: () => true });
const log = createLog({ level: 'warn' });
const cache = new FactsCache({
  log,
  source: {
    lookup: ({ image }) =>
      Promise.resolve({
        image,
        digest: `sha256:${'a'.repeat(64)}`,
        platforms: [
          { os: 'linux', architecture: 'amd64' },
          { os: 'linux', architecture: 'arm64', variant: 'v8' },
        ],
        source: 'registry',
        credentialSource: 'anonymous',
        endpoint: 'registry.example',
        confirmedAt: new Date().toISOString(),
        stale: false,
      }),
  },
});
const requestOf = createRequestOf(defaultCacheTimes, false);
for (const image of images) {
  const request = requestOf(image, 'IfNotPresent', { namespace: '', serviceAccount: undefined });
  const facts = await cache.get(request, { signal: AbortSignal.timeout(5000) });
  if (facts.error) throw new Error(facts.error.message);
}
const webhook = await startWebhook({
  listen: '127.0.0.1:0',
  tls: tlsDir,
  inlineBudgetMs: () => 150,
  policies,
  cache,
  requestOf,
  log,
  metrics: createMetrics(),
});
await webhook.ready;
serveMeasured(`${webhook.url}/mutate?timeout=10s`);
