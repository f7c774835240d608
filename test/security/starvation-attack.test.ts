/**
 * Attack: a tenant's pods name images of registries that never respond, to starve lookups of other tenants.
 */
import t, { type Test } from 'tap';
import { startHostileWorld } from '../support/hostile.ts';

/** Half of what the API server waits: far longer than a lookup, and shorter than a lookup at the tarpit. */
const world = await startHostileWorld({ agents: 2, inlineBudget: '5s' });
t.teardown(() => world.close());

/** `maxImages` in `facts-of-pod.ts`: the number of lookups for one pod. */
const imagesPerPod = 256;

/** The pods of another tenant are placed while the attacker's lookups hang. */
async function othersArePlaced(t: Test, pods: readonly (readonly string[])[]): Promise<void> {
  const attack = pods.map((images) => world.create('attacker', images));
  // On a slow machine, fewer connections hang at a time. Lookups continue after the responses for their pods.
  await Promise.race([world.tarpit.untilHeld(16), Promise.all(attack)]);
  const decided = await Promise.all(
    Array.from({ length: 40 }, () => world.create('shop', [world.goodImage(), world.goodImage()])),
  );
  t.ok(world.tarpit.held() > 0, 'the attack continues');
  const notPlaced = decided.filter(({ isPlaced }) => !isPlaced);
  t.strictSame(
    notPlaced.map(({ answer }) => answer),
    [],
    'all 40 pods are placed',
  );
  t.comment(`slowest: ${Math.round(Math.max(...decided.map(({ tookMs }) => tookMs)))} ms`);
  t.equal(await world.webhook.metric('archwright_fleet_agents{state="silent"}'), 0, 'agents stay healthy');
  await Promise.all(attack);
}

t.test('other pods are placed despite one registry that never responds', (t) =>
  othersArePlaced(t, [world.tarpit.images(imagesPerPod, 1)]),
);

t.test(
  'other pods are placed despite five pods of the attacker at once, each with 256 such registries',
  (t) =>
    othersArePlaced(
      t,
      Array.from({ length: 5 }, () => world.tarpit.images(imagesPerPod, 256)),
    ),
);

t.test(
  "an image after many images of an attacker's pod is looked up for the pod of another tenant",
  async (t) => {
    const target = world.goodImage();
    const attack = Array.from({ length: 4 }, () =>
      world.create('attacker', [...world.tarpit.images(imagesPerPod - 1, 1), target]),
    );
    const { isPlaced } = await world.create('shop', [target]);
    t.ok(isPlaced);
    await Promise.all(attack);
  },
);
