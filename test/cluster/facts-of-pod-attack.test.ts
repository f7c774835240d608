/** Attack: many namespaces create pods with many new images at once, and the pod of another one comes after them. */
import t from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { createFactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { createRequestOf } from '../../src/images/image-request.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { silentLog } from '../support/captured.ts';
import { defaultCacheTimes, factsOf } from '../support/facts.ts';

/** The time of a pod with this budget is over at once. */
const noTime = 1;

function setup() {
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
    clock: {
      ...systemClock,
      sleep: (ms, signal) => (ms === noTime ? Promise.resolve() : systemClock.sleep(ms, signal)),
    },
    log: silentLog,
  });
  const lookUp = (namespace: string, count: number, budgetMs = 5000) =>
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
      budgetMs,
    });
  const attack = Array.from({ length: 50 }, (_, index) => lookUp(`attacker-${index}`, 64));
  return { started, lookUp, attack: Promise.all(attack) };
}

t.test('a pod with one new image does not wait for the lookups of others to start', async (t) => {
  const { started, lookUp, attack } = setup();
  await lookUp('shop', 1);
  t.equal(started.indexOf('shop'), 0);
  for (const found of await attack) t.equal(found.size, 64);
});

t.test('a pod with many new images waits for its turn, within its time budget', async (t) => {
  const { started, lookUp, attack } = setup();
  await lookUp('hurried', 64, noTime);
  t.strictSame([...new Set(started)], ['hurried']);
  await lookUp('shop', 64);
  t.equal([...new Set(started)].indexOf('shop'), 51, 'after all who came before');
  await attack;
});
