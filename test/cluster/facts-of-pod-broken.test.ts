import t from 'tap';
import { createFactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { brokenImagesOf } from '../../src/images/sources/broken-images.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { systemClock } from '../../src/async/clock.ts';
import { facts } from '../support/placement-input.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { bindCounters } from '../../src/webhook/metrics.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const freshUntil = new Date(Date.now() + 60_000).toISOString();
const platforms = [
  { os: 'linux', architecture: 'amd64' },
  { os: 'linux', architecture: 'arm64' },
];

t.test('facts leave out where an image is broken, for pods of the namespace', async (t) => {
  const log = createLog({ level: 'silent' });
  const metrics = createMetrics();
  const memory = new FactsMemory({
    log,
    source: {
      lookup: ({ image }) =>
        Promise.resolve(facts('amd64 arm64', { image, digest, source: 'registry', freshUntil })),
    },
  });
  t.teardown(() => memory.close());
  const note = { digest, architecture: 'arm64', image: 'web', namespaces: ['shop'], until: Infinity };
  const factsOfPod = createFactsOfPod({
    memory,
    pullSecrets: createPullSecrets({ cluster: undefined, keepMs: 0, clock: systemClock, metrics }),
    counters: bindCounters(metrics),
    broken: brokenImagesOf([note], () => 0),
    clock: systemClock,
    log,
  });
  const ask = (namespace: string) =>
    factsOfPod({
      uses: [{ image: 'web', usedBy: ['c'], pullPolicy: 'IfNotPresent', volumeOnly: false }],
      namespace,
      pullSecrets: { names: [] },
      serviceAccount: undefined,
      budgetMs: 5000,
    });
  const asked = ask('shop');
  t.ok(asked instanceof Promise, 'memory does not know it yet');
  t.match((await asked).get('web'), { platforms: [platforms[0]], brokenOn: ['arm64'] });
  const known = ask('shop');
  t.notOk(known instanceof Promise);
  t.match((await known).get('web'), { platforms: [platforms[0]], brokenOn: ['arm64'] });
  t.same((await ask('bank')).get('web')?.platforms, platforms);
});
