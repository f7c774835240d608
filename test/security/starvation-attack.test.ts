/** Attack: pods of one tenant name images of registries that never answer, and starve the lookups of all other tenants. */
import t, { type Test } from 'tap';
import { startHostileWorld } from '../support/hostile.ts';

/** The budget is far longer than a lookup, and shorter than the time for which a tarpit holds one. */
const world = await startHostileWorld({ agents: 2, inlineBudget: '9s' });
t.teardown(() => world.close());

/** The images that `maxLookups` in `facts-of-pod.ts` looks up for one pod. */
const imagesPerPod = 256;

/** The pods of another tenant are placed while the tarpit holds what the attacker's pods wait for. */
async function othersArePlaced(t: Test, pods: readonly (readonly string[])[]): Promise<void> {
  const attack = pods.map((images) => world.create('attacker', images));
  // On a slow machine fewer connections hang at a time. Lookups go on after their pods have an answer.
  await Promise.race([world.tarpit.untilHeld(16), Promise.all(attack)]);
  const decided = await Promise.all(
    Array.from({ length: 40 }, () => world.create('shop', [world.goodImage(), world.goodImage()])),
  );
  t.ok(world.tarpit.held() > 0, 'the attack goes on');
  const notPlaced = decided.filter(({ isPlaced }) => !isPlaced);
  t.same(
    notPlaced.map(({ answer }) => answer),
    [],
    'all 40 are placed',
  );
  t.comment(`slowest: ${Math.round(Math.max(...decided.map(({ tookMs }) => tookMs)))} ms`);
  t.equal(
    await world.webhook.metric('archwright_fleet_agents{state="backed-off"}'),
    0,
    'agents stay healthy',
  );
  await Promise.all(attack);
}

t.test('one registry that never answers', (t) => othersArePlaced(t, [world.tarpit.images(imagesPerPod, 1)]));

t.test('256 registries that never answer', (t) =>
  othersArePlaced(t, [world.tarpit.images(imagesPerPod, 256)]),
);

t.test('ten such pods at once', (t) =>
  othersArePlaced(
    t,
    Array.from({ length: 10 }, () => world.tarpit.images(imagesPerPod, 256)),
  ),
);

t.test(
  'an image of another tenant behind many of the attacker is looked up for the other tenant',
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
