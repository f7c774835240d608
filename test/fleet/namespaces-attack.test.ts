/** Attack: a namespace fills its queue at an agent with slow images, one of them an image of another tenant. */
import t from 'tap';
import { Overloaded } from '../../src/async/fair-semaphore.ts';
import { requestFor, factsOf } from '../support/facts.ts';
import { until } from '../support/until.ts';
import { responding, setup, type Answer } from './fleet-setup.ts';
import { like } from '../support/like.ts';

t.test('an image of another tenant does not wait in the queue of the attacker', async (t) => {
  const answer: Answer = (body, ...rest) =>
    body.images.some(({ image }) => image.includes('slow'))
      ? responding(body, ...rest)
      : { results: body.images.map(({ image }) => factsOf(image)) };
  const { fleet, agents } = await setup(t, [{ facts: answer }]);
  const stop = new AbortController();
  const lookup = (namespace: string, image: string) =>
    fleet.lookup(requestFor(image, { namespace }), { signal: stop.signal });
  const slow = Array.from({ length: 40 }, (_, index) => `registry.example/slow/app-${index}:1`);
  const target = 'registry.example/shop/app:1';
  const attack = [...slow, target].map((image) => lookup('attacker', image));
  // Of 36 places, one namespace gets a third.
  await until(() => agents[0]?.requests.length === 12);
  like(t, await lookup('shop', target), { image: target, error: undefined });
  t.equal(agents[0]?.requests.length, 13);
  stop.abort();
  await Promise.all(attack);
});

t.test('requests that an agent never got are no failures of it', async (t) => {
  const stop = new AbortController();
  const { fleet, metric } = await setup(t, [{ facts: responding }]);
  const answers = Array.from({ length: 800 }, (_, index) =>
    fleet.lookup(requestFor(`registry.example/slow/app-${index}:1`), { signal: stop.signal }),
  );
  const settled = Promise.allSettled(answers);
  // A namespace may have a third of 2,048 requests waiting.
  t.ok((await answers.at(-1)?.catch((error: unknown) => error)) instanceof Overloaded);
  t.equal(await metric('archwright_fleet_attempts_total{outcome="timeout"}'), 0);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 1);
  stop.abort();
  await settled;
});
