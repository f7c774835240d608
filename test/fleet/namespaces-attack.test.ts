/** Attack: a namespace first fills its queue at an agent with slow images, and then names an image of another tenant. */
import t from 'tap';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { readableLog, questionOf, factsOf } from './support.ts';
import { until } from '../support/until.ts';
import { setup, type Answer } from './fleet-setup.ts';

t.test('an image of another tenant does not wait in the queue of the attacker', async (t) => {
  const answer: Answer = (asked, response) => {
    if (asked.images.some(({ image }) => image.includes('slow'))) {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
      return undefined;
    }
    return { results: asked.images.map(({ image }) => factsOf(image)) };
  };
  const { fleet, agents } = await setup(t, [{ facts: answer }]);
  const { log } = readableLog();
  const memory = new FactsMemory({ source: fleet, log, namespacesShareLookups: false });
  t.teardown(() => memory.close());
  const lookup = (namespace: string, image: string) =>
    memory.lookup({ ...questionOf(image), namespace }, { signal: AbortSignal.timeout(10_000) });
  const attack: Promise<unknown>[] = [];
  // Each is a request of its own; one namespace has 9 at a time.
  for (let index = 1; index <= 9; index += 1) {
    attack.push(lookup('attacker', `registry.example/slow/app-${index}:1`));
    await until(() => agents[0]?.asked.length === index);
  }
  const target = 'registry.example/shop/app:1';
  attack.push(lookup('attacker', 'registry.example/slow/app-10:1'), lookup('attacker', target));
  t.match(await lookup('shop', target), { image: target, error: undefined });
  await memory.close();
  await Promise.allSettled(attack);
});
