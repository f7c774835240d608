/**
 * Attack: a namespace fills its queue at an agent with slow images, then names an image of another tenant.
 */
import t from 'tap';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { requestFor, factsOf } from '../support/facts.ts';
import { until } from '../support/until.ts';
import { responding, setup, type Answer } from './fleet-setup.ts';
import { readableLog } from '../support/captured.ts';

t.test('an image of another tenant does not wait in the queue of the attacker', async (t) => {
  const answer: Answer = (body, ...rest) =>
    body.images.some(({ image }) => image.includes('slow'))
      ? responding(body, ...rest)
      : { results: body.images.map(({ image }) => factsOf(image)) };
  const { fleet, agents } = await setup(t, [{ facts: answer }]);
  const { log } = readableLog();
  const cache = new FactsCache({ source: fleet, log, lookupTimeoutMs: 60_000 });
  t.teardown(() => cache.close());
  const lookup = (namespace: string, image: string) =>
    // Times out before the attacker's lookups end.
    cache.get(requestFor(image, { namespace }), { signal: AbortSignal.timeout(40_000) });
  // A registry that works.
  await lookup('shop', 'registry.example/shop/first:1');
  const attack: Promise<unknown>[] = [];
  // Each lookup is one request; a namespace has at most 9 in flight.
  for (let index = 1; index <= 9; index += 1) {
    attack.push(lookup('attacker', `registry.example/slow/app-${index}:1`));
    await until(() => agents[0]?.requests.length === 1 + index);
  }
  const target = 'registry.example/shop/app:1';
  attack.push(lookup('attacker', 'registry.example/slow/app-10:1'), lookup('attacker', target));
  t.match(await lookup('shop', target), { image: target, error: undefined });
  await cache.close();
  await Promise.allSettled(attack);
});
