import t, { type Test } from 'tap';
import { createFactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { brokenImagesOf } from '../../src/images/sources/broken-images.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createRequestOf } from '../../src/images/image-request.ts';
import { defaultCacheTimes } from '../support/facts.ts';
import { systemClock } from '../../src/async/clock.ts';
import { compileOverrides } from '../../src/images/sources/overrides.ts';
import { facts } from '../support/placement-input.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const platforms = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64' },
];

type Note = Parameters<typeof brokenImagesOf>[0][number];

/** Looks up the facts of images for pods of a namespace. */
function factsWith(t: Test, notes: readonly Note[], overrides: Parameters<typeof compileOverrides>[0] = []) {
  const log = silentLog;
  const metrics = createMetrics();
  const compiled = compileOverrides(overrides, systemClock);
  const cache = new FactsCache({
    log,
    overrides: () => compiled,
    source: {
      lookup: ({ image }) => Promise.resolve(facts('amd64 arm64', { image, digest, source: 'registry' })),
    },
  });
  t.teardown(() => cache.close());
  const factsOfPod = createFactsOfPod({
    cache,
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: createPullSecrets({ cluster: undefined, keepMs: 0, clock: systemClock, metrics }),
    broken: brokenImagesOf(notes, () => 0),
    clock: systemClock,
    log,
  });
  return (namespace: string, image = 'web') =>
    factsOfPod({
      uses: [{ image, usedBy: ['c'], pullPolicy: 'IfNotPresent', volumeOnly: false }],
      namespace,
      pullSecrets: { names: [] },
      serviceAccount: undefined,
      budgetMs: 5000,
    });
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
