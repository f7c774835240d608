/** The feature as a whole: when it reconciles, and when it ends. */
import t from 'tap';
import { taints } from '../../../src/controller/taints/taints.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { annotation, key, putNode, startWorld } from './setup.ts';

void t.test('back-off, new nodes at once, a regular look at everything, the end', async (t) => {
  const clock = createFakeClock(() => 1);
  const world = await startWorld(t, { clock });
  const { store, leading } = world;
  putNode(store, 'arm-1', 'arm64');
  await world.settled();
  const down = store.fault(/^GET \/api\/v1\/nodes\/./, { status: 503 });
  const done = taints(leading);
  await store.until(() => world.lines.some((line) => line.includes('trying again')));
  down();
  await clock.advance(249);
  t.same(world.taints('arm-1'), []);
  await clock.advance(1);
  await store.until(() => world.taints('arm-1').length === 1, 'the first taint');

  putNode(store, 'arm-2', 'arm64');
  await store.until(() => world.taints('arm-2').length === 1, 'the taint of a new node, at once');
  store.put('/api/v1/nodes/arm-1', {
    spec: { taints: [] },
    metadata: { annotations: { [annotation]: key } },
    status: { nodeInfo: { architecture: 'arm64' } },
  });
  await store.until(() => world.taints('arm-1').length === 1, 'the taint that a person removed');

  world.configure({ taintArchitectures: [] });
  await clock.advance(10_000);
  await store.until(() => world.taints('arm-1').length + world.taints('arm-2').length === 0, 'no taint');
  world.depose();
  await done;
  t.equal(clock.pending, 0);
});
