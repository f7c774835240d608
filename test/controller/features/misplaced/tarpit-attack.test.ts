/** Attack: a tenant delays the search for misplaced pods with images whose lookups hang. */
import t from 'tap';
import { misplacedPods } from '../../../../src/controller/features/misplaced/misplaced.ts';
import { factsByImage, lead } from '../../leader.ts';
import { factsFrom } from '../../../support/placement-input.ts';
import { evictions, known, putPod, startWorld, webOwner } from './setup.ts';

t.test('a pod is evicted despite 300 suspects with hanging lookups', async (t) => {
  const end = Promise.withResolvers<void>();
  let checks = 0;
  const world = await startWorld(t, {
    factsOfPod: async ({ uses, namespace }) => {
      if (namespace === 'attacker') {
        checks += 1;
        await end.promise;
      }
      return factsByImage(uses, factsFrom(known));
    },
  });
  for (let index = 0; index < 300; index += 1)
    world.store.put(`/api/v1/namespaces/attacker/pods/slow-${index}`, {
      metadata: { creationTimestamp: '2026-11-21T10:00:00Z', ownerReferences: [webOwner] },
      spec: { nodeName: 'arm-1', containers: [{ name: 'app', image: `slow:${index}` }] },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] },
    });
  putPod(world.store, 'web-a');
  await world.settled();
  const running = lead(misplacedPods, world.leader);
  await world.store.until(async () => {
    await world.clock.advance(31_000);
    return world.store.received(evictions).length === 1;
  });
  t.ok(checks > 0 && checks < 8, `${checks} hanging lookups`);
  world.depose();
  end.resolve();
  await running;
});
