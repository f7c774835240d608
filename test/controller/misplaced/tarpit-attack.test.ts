/** Attack: pods of a tenant whose images are never answered for, to keep misplaced pods of others from being found. */
import t from 'tap';
import { factsByImage } from '../leading.ts';
import { factsFrom } from '../../support/placement-input.ts';
import { evictions, known, putPod, startWorld, webOwner } from './setup.ts';

t.test('300 suspects of a tenant whose images are never answered for: another pod is evicted', async (t) => {
  const answer = Promise.withResolvers<void>();
  let asked = 0;
  const world = await startWorld(t, {
    factsOfPod: ({ uses, namespace }) => {
      const facts = factsByImage(uses, factsFrom(known));
      if (namespace !== 'attacker') return facts;
      asked += 1;
      return answer.promise.then(() => facts);
    },
  });
  for (let index = 0; index < 300; index += 1)
    world.store.put(`/api/v1/namespaces/attacker/pods/slow-${index}`, {
      metadata: { creationTimestamp: '2026-11-21T10:00:00Z', ownerReferences: [webOwner] },
      spec: { nodeName: 'arm-1', containers: [{ name: 'app', image: `slow:${index}` }] },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] },
    });
  putPod(world.store, 'web-a');
  await world.after(0);
  const run = world.after(31_000);
  await world.store.until(() => asked >= 3, 'the checks to be held');
  await new Promise(setImmediate);
  t.equal(asked, 3, 'of 8 places');
  // Checks end after their time, which is 30 s here.
  await world.clock.advance(31_000);
  answer.resolve();
  t.equal(await run, true, 'there is more to do');
  t.equal(world.store.asked(evictions).length, 1);
});
