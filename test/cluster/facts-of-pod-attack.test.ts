/** Attack: many namespaces create pods with many new images at once, and the pod of another one comes after them. */
import t from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { createFactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { createRequestOf } from '../../src/images/image-request.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { bindCounters } from '../../src/webhook/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { defaultCacheTimes, factsOf } from '../support/facts.ts';

t.test('a pod with one new image does not wait for the lookups of others to start', async (t) => {
  const metrics = createMetrics();
  const started: string[] = [];
  const factsOfPod = createFactsOfPod({
    cache: {
      peek: () => undefined,
      get: async ({ image, namespace = '' }) => {
        started.push(namespace);
        return factsOf(image);
      },
      levelOf: undefined,
    },
    requestOf: createRequestOf(defaultCacheTimes, false),
    pullSecrets: createPullSecrets({ cluster: undefined, keepMs: 0, clock: systemClock, metrics }),
    counters: bindCounters(metrics),
    clock: systemClock,
    log: silentLog,
  });
  const lookUp = (namespace: string, count: number) =>
    factsOfPod({
      uses: Array.from({ length: count }, (_, index) => {
        return {
          image: `app-${index}`,
          usedBy: ['c'],
          pullPolicy: 'IfNotPresent',
          volumeOnly: false,
        } as const;
      }),
      namespace,
      pullSecrets: { names: [] },
      serviceAccount: undefined,
      budgetMs: 5000,
    });
  const attack = Array.from({ length: 50 }, (_, index) => lookUp(`attacker-${index}`, 64));
  await lookUp('shop', 1);
  t.equal(started.indexOf('shop'), 0);
  for (const found of await Promise.all(attack)) t.equal(found.size, 64);
});
