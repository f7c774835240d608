import t from 'tap';
import { createEvictor, maxUnavailable } from '../../../src/controller/write/evictor.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { neverAborted } from '../../support/never-aborted.ts';

t.test('owners with due evictions share the rate equally; one alone has all of it', async (t) => {
  const clock = createFakeClock();
  const evict = createEvictor({
    client: {} as KubeClient,
    signal: neverAborted,
    clock,
    configuration: () => ({ evictionsPerMinute: 12 }),
  });
  /** The owners that took their turn. The pod has changed, which takes it too. */
  const ask = async (...owners: string[]): Promise<string> => {
    let turns = '';
    for (let count = 0; count < 6; count += 1) {
      for (const owner of owners) {
        const eviction = await evict(owner, () => Promise.resolve(undefined));
        if (eviction.outcome !== 'later') turns += owner;
      }
      await clock.advance(5000);
    }
    return turns;
  };
  t.equal(await ask('a'), 'aaaaaa');
  t.equal(await ask('a', 'b'), 'ababab', 'the one that always asks first');
  t.equal(await ask('a'), 'aaaa', 'the other counts for less than 30 s');
  t.equal(await ask('b', 'a', 'c'), 'bcabca');
  await clock.advance(30_000);
  t.equal(await ask('b'), 'bbbbbb', 'the others no longer ask');
});

t.test('the disruption limit is at least one', async (t) => {
  const ofAQuarter = [1, 7, 8].map((pods) => maxUnavailable(pods, 25));
  t.strictSame([...ofAQuarter, maxUnavailable(10, 100), maxUnavailable(0, 1)], [1, 1, 2, 10, 1]);
});
