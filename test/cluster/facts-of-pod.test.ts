/** Facts of a pod's images: what nodes have shown of them, and the turns of pods with many new images. */
import t, { type Test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { createFactsOfPod, type FactsOfPodOptions } from '../../src/cluster/facts-of-pod.ts';
import { createPullSecrets, noPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import { brokenImagesOf } from '../../src/images/sources/broken-images.ts';
import { compileOverrides } from '../../src/images/sources/overrides.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { defaultCacheTimes, factsOf, failureOf } from '../support/facts.ts';
import { like } from '../support/like.ts';
import { facts } from '../support/placement-input.ts';

/** The time of a pod with this budget is over at once. */
const noTime = 1;

/** @returns looks up these images for a pod of a namespace without pull secrets */
function lookUpWith(options: Pick<FactsOfPodOptions, 'cache'> & Partial<FactsOfPodOptions>) {
  const factsOfPod = createFactsOfPod({
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: createPullSecrets({ cluster: undefined, clock: systemClock, metrics: createMetrics() }),
    clock: {
      ...systemClock,
      sleep: (ms, signal) => (ms === noTime ? Promise.resolve() : systemClock.sleep(ms, signal)),
    },
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
