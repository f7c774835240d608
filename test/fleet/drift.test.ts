/** Drift checks through real agents and a real registry: the requests, and the memories after them. */
import t, { type Test } from 'tap';
import { startAgent } from '../../daemon/agent.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import { staticDiscovery } from '../../src/fleet/discovery/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import type { ImageFacts, ImageRequest } from '../../src/images/facts/facts.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { createRegistrySource } from '../../src/images/sources/registry-source.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { multiArch } from '../support/registry/content.ts';
import { clientFor, credential, endpointOf, startRegistry } from '../support/registry/client.ts';
import type { TestRegistry, TestRegistryOptions } from '../support/registry/server.ts';
import { setup } from './fleet-setup.ts';
import { connect, createPki, requestFor } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { silentLog } from '../support/captured.ts';

const both = multiArch(['linux/amd64', 'linux/arm64']);
const single = multiArch(['linux/amd64'], { label: 'second' });

/**
 * Two agents of one credential group that can lose their memory, and the memories of a controller and a
 * webhook.
 */
async function start(t: Test, options: TestRegistryOptions = {}, hedgeMs = 30_000) {
  const registry = await startRegistry(t, options);
  registry.push('shop/web', '1', both);
  const pki = await createPki(t);
  const urls: string[] = [];
  const agents: ReturnType<typeof forgetful>[] = [];
  for (const nodeName of ['one', 'two']) {
    const memory = forgetful(t, registry);
    const running = await startAgent({
      listen: '127.0.0.1:0',
      metricsListen: '127.0.0.1:0',
      tlsDir: pki.serverDir,
      nodeName,
      version: '1',
      node: () => ({}),
      problems: () => [],
      memory: memory.current,
      fingerprint: () => 'same',
      log: silentLog,
      metrics: createMetrics(),
    });
    t.teardown(() => running.stop(0));
    urls.push(running.url);
    agents.push(memory);
  }
  const memoryOf = async (agentUrls: readonly string[] = urls): Promise<FactsMemory> => {
    const fleet = createFleet({
      discovery: staticDiscovery(agentUrls),
      connection: await connect(t, pki),
      clock: systemClock,
      log: silentLog,
      metrics: createMetrics(),
      responseTime: { floorMs: hedgeMs, capMs: hedgeMs },
    });
    t.teardown(() => fleet.close());
    const memory = new FactsMemory({ source: fleet, log: silentLog, tagsAnswerForDigests: false });
    t.teardown(() => memory.close());
    return memory;
  };
  return {
    registry,
    webhook: await memoryOf(),
    controller: await memoryOf(),
    /** Two memories, each with one agent of its own. */
    apart: () => Promise.all(urls.map((url) => memoryOf([url]))),
    image: `${registry.host}/shop/web:1`,
    forget: (): void => agents.forEach((agent) => agent.forget()),
  };
}

/** The memory of an agent; `forget` is a restart without a state directory. */
function forgetful(t: Test, registry: TestRegistry) {
  const client = clientFor(t);
  const make = (): FactsMemory => {
    const source = createRegistrySource({
      registry: client,
      endpoints: { endpoints: () => Promise.resolve([endpointOf(registry)]), fingerprint: () => '' },
      credentials: { lookup: () => Promise.resolve([]) },
      mayAskAnonymously: () => true,
    });
    const made = new FactsMemory({ source, log: silentLog });
    t.teardown(() => made.close());
    return made;
  };
  let memory = make();
  return {
    forget: (): void => void (memory = make()),
    current: {
      lookup: (...how: Parameters<FactsMemory['lookup']>) => memory.lookup(...how),
      shared: () => memory.shared(),
      get size() {
        return memory.size;
      },
    },
  };
}

/** A check for drift. */
function check(
  memory: FactsMemory,
  image: string,
  knownDigest: string,
  more: Partial<ImageRequest> = {},
): Promise<ImageFacts> {
  const request = { ...requestFor(image), pullPolicy: 'Always', ...more, knownDigest } as const;
  return memory.lookup(request, { signal: neverAborted });
}

function lookup(memory: FactsMemory, image: string, credentials: readonly MatchedCredential[] = []) {
  return memory.lookup(requestFor(image, credentials), { signal: neverAborted });
}

const architectures = ({ platforms }: ImageFacts): readonly string[] =>
  platforms.map(({ architecture }) => architecture);

t.test('an unchanged digest costs one HEAD, with or without memories', async (t) => {
  const { registry, controller, webhook, image, forget } = await start(t);
  t.match(await check(controller, image, both.digest), {
    digest: both.digest,
    unchanged: true,
    platforms: [],
  });
  t.same(registry.counts(), { 'HEAD manifests': 1 });
  t.equal(controller.recall(requestFor(image)), undefined, 'an unchanged digest is no fact of the image');

  t.same(architectures(await lookup(webhook, image)), ['amd64', 'arm64'], 'not in an agent either');
  registry.clearRequests();
  const known = await check(controller, image, both.digest);
  t.same(
    [architectures(known), known.unchanged],
    [['amd64', 'arm64'], undefined],
    'the agent remembers the platforms',
  );
  t.same(registry.counts(), { 'HEAD manifests': 1 });

  forget();
  registry.clearRequests();
  t.same(
    architectures(await check(controller, image, both.digest)),
    ['amd64', 'arm64'],
    'the controller remembers the platforms',
  );
  t.same(registry.counts(), { 'HEAD manifests': 1 });
});

t.test(
  'a tag that was pushed again costs one GET; the webhook has the new facts after outdate',
  async (t) => {
    const { registry, controller, webhook, image } = await start(t);
    await lookup(webhook, image);
    await lookup(controller, image);
    registry.push('shop/web', '1', single);
    registry.clearRequests();
    t.same(architectures(await check(controller, image, both.digest)), ['amd64']);
    t.same(registry.counts(), { 'HEAD manifests': 1, 'GET manifests': 1 });
    t.same(architectures(await lookup(controller, image)), ['amd64']);

    t.same(
      architectures(await lookup(webhook, image)),
      ['amd64', 'arm64'],
      'the webhook still has the old facts',
    );
    webhook.outdate(image, single.digest);
    t.equal(webhook.recall(requestFor(image)), undefined);
    t.same(architectures(await lookup(webhook, image)), ['amd64']);
    webhook.outdate(image, single.digest);
    t.ok(webhook.recall(requestFor(image)), 'new facts stay');
    t.same(registry.counts(), { 'HEAD manifests': 1, 'GET manifests': 1 }, 'the agent had the facts');
  },
);

t.test('an agent with the old digest of a tag fetches the new one', async (t) => {
  const { registry, image, apart } = await start(t);
  const [controller, webhook] = await apart();
  if (!controller || !webhook) throw new Error('two agents');
  for (const memory of [controller, webhook]) await lookup(memory, image);
  registry.push('shop/web', '1', single);
  await check(controller, image, both.digest);
  registry.clearRequests();
  webhook.outdate(image, single.digest);
  t.same(architectures(await lookup(webhook, image)), ['amd64']);
  t.same(registry.counts(), { 'HEAD manifests': 1, 'GET manifests': 1 });
  t.same(architectures(webhook.recall(requestFor(image)) ?? (await lookup(webhook, image))), ['amd64']);
  t.same(registry.counts(), { 'HEAD manifests': 1, 'GET manifests': 1 });
});

t.test('a check with the credential of one pod removes the facts of all credentials', async (t) => {
  const users = { a: 'password-1', b: 'password-2' };
  const { registry, controller, image } = await start(t, { auth: { kind: 'basic', users } });
  const [ofA, ofB] = Object.entries(users).map(([user, password]) => {
    const source = 'pull-secret' as const;
    return [credential(user, password, { source, key: registry.host, id: user })];
  });
  if (!ofA || !ofB) throw new Error('two users');
  for (const credentials of [ofA, ofB])
    t.same(architectures(await lookup(controller, image, credentials)), ['amd64', 'arm64']);
  registry.push('shop/web', '1', single);
  registry.clearRequests();
  await check(controller, image, both.digest, { pullCredentials: ofA });
  const served = registry.requests.filter(({ status }) => status === 200);
  t.same(
    served.map(({ method, authorization }) => [method, authorization?.user]),
    [
      ['HEAD', 'a'],
      ['GET', 'a'],
    ],
  );
  t.same(architectures(await lookup(controller, image, ofB)), ['amd64'], 'b is looked up again');
});

t.test('a slow check is not hedged, and lookups of pods do not join it', async (t) => {
  const { registry, controller, image } = await start(t, {}, 1);
  const slow = Promise.withResolvers<void>();
  registry.faults.add(/manifests/, { kind: 'after', event: slow.promise }, { method: 'HEAD' });
  const checked = check(controller, image, both.digest);
  await registry.waitFor(({ method }) => method === 'HEAD');
  const facts = await lookup(controller, image);
  t.same([architectures(facts), facts.unchanged], [['amd64', 'arm64'], undefined]);
  slow.resolve();
  t.ok((await checked).digest);
  t.equal(registry.counts()['HEAD manifests'], 1);
});

t.test('attack: confirmations of another digest, or in a lookup without one, are refused', async (t) => {
  const facts = {
    platforms: [],
    source: 'registry',
    credentialSource: 'anonymous',
    endpoint: 'r',
    stale: false,
  };
  const confirming = {
    facts: ({ images }: { images: readonly { image: string }[] }) => ({
      results: images.map(({ image }) => {
        const freshUntil = '2026-11-01T00:00:00Z';
        return { ...facts, image, digest: single.digest, freshUntil, unchanged: true };
      }),
    }),
  };
  const { lookup: ask } = await setup(t, [confirming]);
  for (const request of [{}, { knownDigest: both.digest }])
    t.match(await ask(request), { error: { code: 'unavailable', message: /confirms another digest/ } });
  t.match(await ask({ knownDigest: single.digest }), { unchanged: true });
});
