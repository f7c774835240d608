/**
 * Facts of a pod's images: what nodes have shown of them, and the turns of pods with many new images. And the
 * nodes that its images exclude with `requirePullableNodes`, by its pull secrets; that fleet is scripted.
 */
import t, { type Test } from 'tap';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import type { Cluster } from '../../src/cluster/cluster.ts';
import { createFactsOfPod, type FactsOfPodOptions } from '../../src/cluster/facts-of-pod.ts';
import { createPullableNodes } from '../../src/cluster/pullable-nodes.ts';
import { createPullSecrets, noPullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { type ImageFacts, createRequestOf } from '../../src/images/facts/facts.ts';
import { brokenImagesOf } from '../../src/images/sources/broken-images.ts';
import { compileOverrides } from '../../src/images/sources/overrides.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { defaultCacheTimes, factsOf, failureOf } from '../support/facts.ts';
import { like } from '../support/like.ts';
import { facts } from '../support/placement-input.ts';

/** The time of a pod with this budget is over at once. */
const noTime = 1;
const clock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => (ms === noTime ? Promise.resolve() : systemClock.sleep(ms, signal)),
};

/** @returns looks up these images for a pod of a namespace without pull secrets */
function lookUpWith(options: Pick<FactsOfPodOptions, 'cache'> & Partial<FactsOfPodOptions>) {
  const factsOfPod = createFactsOfPod({
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: createPullSecrets({ cluster: undefined, clock: systemClock, metrics: createMetrics() }),
    clock,
    log: silentLog,
    ...options,
  });
  return (namespace: string, images: readonly string[], budgetMs = 5000) =>
    factsOfPod({
      uses: images.map((image) => {
        return { image, usedBy: ['c'], pullPolicy: 'IfNotPresent', volumeOnly: false } as const;
      }),
      namespace,
      pullSecrets: { names: [] },
      serviceAccount: undefined,
      budgetMs,
    });
}

const digest = `sha256:${'a'.repeat(64)}`;
const platforms = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64' },
];

type Note = Parameters<typeof brokenImagesOf>[0][number];

function factsWith(t: Test, notes: readonly Note[], overrides: Parameters<typeof compileOverrides>[0] = []) {
  const compiled = compileOverrides(overrides, systemClock);
  const cache = new FactsCache({
    log: silentLog,
    overrides: () => compiled,
    source: {
      lookup: ({ image }) => Promise.resolve(facts('amd64 arm64', { image, digest, source: 'registry' })),
    },
  });
  t.teardown(() => cache.close());
  const lookUp = lookUpWith({ cache, broken: brokenImagesOf(notes, () => 0) });
  return (namespace: string, image = 'web') => lookUp(namespace, [image]);
}

const note = { digest, architecture: 'arm64', image: 'web', namespaces: ['shop'], until: Infinity };

t.test("facts omit an image's broken architectures, for pods of the namespace", async (t) => {
  const ask = factsWith(t, [note]);
  for (const when of ['looked up', 'in the cache'])
    like(t, (await ask('shop')).get('web'), { platforms: [platforms[0]], brokenOn: ['arm64'] }, when);
  t.strictSame((await ask('bank')).get('web')?.platforms, platforms);
});

t.test('facts have the CPU level noted for the namespace, or from an override', async (t) => {
  const level = { ...note, architecture: 'amd64', level: 3 } as const;
  const ask = factsWith(
    t,
    [level],
    [
      { match: 'web', level: 'v2' },
      { match: 'fixed', architectures: ['amd64'], level: 'v4' },
    ],
  );
  like(t, (await ask('shop')).get('web'), { platforms, requiredLevel: 3, brokenOn: undefined });
  like(t, (await ask('bank')).get('web'), { platforms, requiredLevel: 2 });
  like(t, (await ask('shop', 'fixed')).get('fixed'), { source: 'override', requiredLevel: 4 });
  like(t, (await ask('shop', 'other')).get('other'), { platforms, requiredLevel: 3 }, 'by digest');
  t.equal((await ask('bank', 'other')).get('other')?.requiredLevel, undefined);
});

t.test('a failure in the cache is final for a pod without pull secrets only', async (t) => {
  const failed = failureOf('web', 'unauthorized');
  const cache = { peek: () => failed, get: async () => factsOf('web'), levelOf: undefined };
  const errorOf = async (mayHave: boolean) => {
    const pullSecrets = { mayHave: () => mayHave, source: async () => noPullSecrets };
    return (await lookUpWith({ cache, pullSecrets })('shop', ['web'])).get('web')?.error;
  };
  t.equal(await errorOf(false), failed.error);
  t.equal(await errorOf(true), undefined);
});

t.test('a lookup waits within its budget; an error of the lookup itself is thrown', async (t) => {
  const waits: boolean[] = [];
  const get = (): Promise<never> => Promise.reject(new Error('defect'));
  const lookUp = lookUpWith({
    cache: { peek: () => undefined, get, levelOf: undefined },
    onWait: (inTime) => void waits.push(inTime),
  });
  await t.rejects(lookUp('shop', ['web']), { message: 'defect' });
  const older = { ...factsOf('web'), digest };
  const cache = { peek: () => undefined, get: async () => older, levelOf: undefined };
  await lookUpWith({ cache, onWait: (inTime) => void waits.push(inTime) })('shop', ['web']);
  t.strictSame(waits, [true]);
});

/** Many namespaces create pods with many new images at once. */
function attacked() {
  const started: string[] = [];
  const lookUpAll = lookUpWith({
    cache: {
      peek: () => undefined,
      get: async ({ image, namespace = '' }) => {
        started.push(namespace);
        return factsOf(image);
      },
      levelOf: undefined,
    },
  });
  const lookUp = (namespace: string, count: number, budgetMs?: number) =>
    lookUpAll(
      namespace,
      Array.from({ length: count }, (_, index) => `app-${index}`),
      budgetMs,
    );
  const attack = Array.from({ length: 50 }, (_, index) => lookUp(`attacker-${index}`, 64));
  return { started, lookUp, attack: Promise.all(attack) };
}

t.test('attack: a pod with one new image does not wait for the lookups of others to start', async (t) => {
  const { started, lookUp, attack } = attacked();
  await lookUp('shop', 1);
  t.equal(started.indexOf('shop'), 0);
  for (const found of await attack) t.equal(found.size, 64);
});

t.test('attack: a pod with many new images waits for its turn, within its time budget', async (t) => {
  const { started, lookUp, attack } = attacked();
  await lookUp('hurried', 64, noTime);
  t.strictSame([...new Set(started)], ['hurried']);
  await lookUp('shop', 64);
  t.equal([...new Set(started)].indexOf('shop'), 51, 'after all who came before');
  await attack;
});

const image = 'registry.example/team/app:1';

function secretWith(text: string): Cluster['secret'] {
  const data = { '.dockerconfigjson': Buffer.from(text).toString('base64') };
  return (namespace, name) =>
    Promise.resolve({ metadata: { namespace, name }, type: 'kubernetes.io/dockerconfigjson', data });
}
const robot = { username: 'robot', password: 'let-me-in' };
const good = secretWith(JSON.stringify({ auths: { 'registry.example': robot } }));

interface Given {
  /** Whether the group `poor` can pull; `able` always can. */
  readonly poor?: 'never' | 'with the secret';
  readonly secret?: Cluster['secret'];
  readonly facts?: ImageFacts;
  /** Hostnames that each agent answers for. Default: its node. */
  readonly hostnames?: (node: string) => readonly string[];
}

/** @returns which nodes can pull, `undefined` if nothing is known, and which requests the fleet got */
async function pullableBy(given: Given) {
  const { poor = 'never', secret, facts = factsOf(image), hostnames = (node) => [node] } = given;
  const requests: string[] = [];
  const group = (name: string) => {
    return { fingerprint: name, nodes: [`node-${name}`], architectures: ['amd64'] };
  };
  const fleet: Pick<Fleet, 'pullable'> = {
    pullable: ({ pullCredentials }) => {
      const hasSecret = pullCredentials.length > 0;
      requests.push(hasSecret ? 'with' : 'without');
      const [able, other] = [group('able'), group('poor')];
      const canPull = hasSecret && poor === 'with the secret';
      return Promise.resolve(
        canPull ? { able: [able, other], unable: [] } : { able: [able], unable: [other] },
      );
    },
  };
  const cluster = {
    secret: secret ?? (() => Promise.resolve(undefined)),
    serviceAccountPullSecrets: () => Promise.resolve([]),
  };
  const pullableNodes = createPullableNodes({
    fleet,
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: createPullSecrets({ cluster, clock, metrics: createMetrics() }),
    nodeHostnames: hostnames,
    clock,
    log: silentLog,
  });
  const request = {
    namespace: 'shop',
    uses: [{ image, pullPolicy: 'IfNotPresent' as const, usedBy: ['app'], volumeOnly: false }],
    pullSecrets: { names: secret ? ['regcred'] : [] },
    serviceAccount: { namespace: 'shop', name: 'default' },
    budgetMs: secret === hanging ? noTime : 5000,
  };
  const found = await pullableNodes(request, new Map([[image, facts]]));
  return { found: found.get(image), requests };
}

const hanging = (): Promise<never> => new Promise(() => undefined);
const byPullSecret = factsOf(image, { credentialSource: 'pull-secret' });

const rows: Readonly<Record<string, [given: Given, excluded: string[] | undefined, requests: string[]]>> = {
  'no pull secret': [{}, ['node-poor'], ['without']],
  'the node can pull with the pull secret': [
    { poor: 'with the secret', secret: good },
    [],
    ['without', 'with'],
  ],
  'it cannot, despite the pull secret': [{ secret: good }, ['node-poor'], ['without', 'with']],
  'facts that needed the pull secret': [
    { poor: 'with the secret', secret: good, facts: byPullSecret },
    [],
    ['with'],
  ],
  'a pull secret that cannot be read': [{ secret: hanging }, undefined, ['without']],
  'a refused read': [
    { secret: () => Promise.reject(new Error('away')) },
    ['node-poor'],
    ['without', 'without'],
  ],
  'a malformed pull secret': [{ secret: secretWith('{') }, undefined, ['without']],
  'an unknown image': [{ facts: failureOf(image, 'not-found') }, undefined, []],
  'an override': [{ facts: factsOf(image, { source: 'override' }) }, undefined, []],
};

for (const [about, [given, excluded, wanted]] of Object.entries(rows))
  t.test(about, async (t) => {
    const { found, requests } = await pullableBy(given);
    const hostnames = found?.unable.flatMap((group) => group.hostnames);
    t.strictSame([hostnames, requests], [excluded, wanted]);
  });

t.test('a node without an agent stays eligible in a pool with agents of both groups', async (t) => {
  const { found } = await pullableBy({ hostnames: (node) => [node, 'shared'] });
  const architectures = ['amd64'];
  t.strictSame(found, {
    able: [{ fingerprint: 'able', architectures, hostnames: ['node-able', 'shared'] }],
    unable: [{ fingerprint: 'poor', architectures, hostnames: ['node-poor'] }],
  });
});
