/**
 * One registry request per image: webhooks, each with its own fleet and memory, look up all images at once at
 * real agents.
 */
import t, { type Test } from 'tap';
import { startAgent } from '../../daemon/agent.ts';
import { concurrently } from '../../src/async/concurrently.ts';
import { staticDiscovery } from '../../src/fleet/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { systemClock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { sized } from '../support/exhaustive.ts';
import { factsOf, failureOf, requestFor } from '../support/facts.ts';
import { connect, createPki, type Pki } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { silentLog } from '../support/captured.ts';

const agents = sized(8, 20);
const count = sized(150, 500);
const images = Array.from({ length: count }, (_, index) => `r.example/team-${index % 9}/app-${index}:1`);

/** An agent with a registry that counts lookups. */
async function startCounting(
  t: Test,
  pki: Pki,
  fingerprint: string,
  counts: Map<string, number>,
  answer: (image: string) => ImageFacts,
): Promise<string> {
  const cache = new FactsCache({
    log: silentLog,
    source: {
      lookup: async ({ image }) => {
        counts.set(image, (counts.get(image) ?? 0) + 1);
        await new Promise((resolve) => setImmediate(resolve));
        return answer(image);
      },
    },
  });
  const agent = await startAgent({
    listen: '127.0.0.1:0',
    metricsListen: '127.0.0.1:0',
    tlsDir: pki.serverDir,
    nodeName: fingerprint,
    version: '1',
    cache,
    fingerprint: () => fingerprint,
    node: () => ({}),
    problems: () => [],
    log: silentLog,
    metrics: createMetrics(),
  });
  t.teardown(async () => {
    await agent.stop(0);
    await cache.close();
  });
  return agent.url;
}

async function startWebhookCache(t: Test, pki: Pki, urls: readonly string[]): Promise<FactsCache> {
  const connection = await connect(t, pki, { dialTimeoutMs: 30_000 });
  const fleet = createFleet({
    discovery: staticDiscovery(urls),
    connection,
    clock: systemClock,
    log: silentLog,
    metrics: createMetrics(),
    lookupTimeoutMs: 50_000,
  });
  t.teardown(() => fleet.close());
  const cache = new FactsCache({ source: fleet, log: silentLog, lookupTimeoutMs: 55_000 });
  t.teardown(() => cache.close());
  await fleet.readShared((facts) => cache.learn(facts), neverAborted);
  return cache;
}

async function askAll(caches: readonly FactsCache[]): Promise<readonly ImageFacts[]> {
  const answers = await Promise.all(
    caches.map((cache) =>
      concurrently(images, 40, (image) => cache.get(requestFor(image), { signal: neverAborted })),
    ),
  );
  return answers.flat();
}

t.test(`${agents} agents, 3 webhooks, ${count} images: each image is inspected once`, async (t) => {
  const pki = await createPki(t);
  const counts = new Map<string, number>();
  const urls = await Promise.all(
    Array.from({ length: agents }, () => startCounting(t, pki, 'same', counts, (image) => factsOf(image))),
  );
  const caches = await Promise.all([1, 2, 3].map(() => startWebhookCache(t, pki, urls)));
  const answers = await askAll(caches);
  t.equal(answers.length, 3 * count);
  t.notOk(answers.find((facts) => facts.error));
  t.equal(counts.size, count);
  t.strictSame([...new Set(counts.values())], [1]);

  // A webhook that starts later loads the agents' facts and sends no lookup.
  const late = await startWebhookCache(t, pki, urls);
  t.equal(late.size, count);
  t.ok(images.every((image) => late.peek(requestFor(image))));
  t.strictSame([...new Set(counts.values())], [1]);
});

t.test('two credential groups, one with access: each inspects each image at most once', async (t) => {
  const pki = await createPki(t);
  const [poor, rich] = [new Map<string, number>(), new Map<string, number>()];
  const urls = await Promise.all([
    ...Array.from({ length: 5 }, () =>
      startCounting(t, pki, 'poor', poor, (image) => failureOf(image, 'unauthorized')),
    ),
    ...Array.from({ length: 5 }, () => startCounting(t, pki, 'rich', rich, (image) => factsOf(image))),
  ]);
  const caches = await Promise.all([1, 2].map(() => startWebhookCache(t, pki, urls)));
  const answers = await askAll(caches);
  t.notOk(answers.find((facts) => facts.error));
  t.equal(rich.size, count);
  t.strictSame([...new Set(rich.values())], [1]);
  t.ok(
    poor.size > 0.3 * count && poor.size < 0.7 * count,
    `${poor.size} images are owned by an agent without access`,
  );
  t.strictSame([...new Set(poor.values())], [1]);
});
