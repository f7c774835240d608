/** The feature as a whole: when it looks, and when it ends. */
import t from 'tap';
import { taints } from '../../../src/controller/taints/taints.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { annotation, key, putNode, startWorld } from './setup.ts';

const nodePath = '/api/v1/nodes/arm-1';

void t.test('the feature: rounds, new nodes at once, back-off, its end', async (t) => {
  const world = await startWorld(t);
  const { store, leading } = world;
  const time = createFakeClock();
  putNode(store, 'arm-1', 'arm64');
  await world.settled();
  const down = store.fault(/^GET \/api\/v1\/nodes\/./, { status: 503 });
  const done = taints({ sleep: time.sleep, random: () => 1 })(leading);
  await store.until(() =>
    world.lines.some((line) => line.includes('taints could not be brought up to date')),
  );
  down();
  await time.advance(999);
  t.same(world.taints('arm-1'), []);
  await time.advance(1);
  await store.until(() => world.taints('arm-1').length === 1, 'the first taint');

  putNode(store, 'arm-2', 'arm64');
  await store.until(
    () => world.taints('arm-2').length === 1,
    'the taint of a new node, without time passing',
  );
  store.put(nodePath, {
    spec: { taints: [] },
    metadata: { annotations: { [annotation]: key } },
    status: { nodeInfo: { architecture: 'arm64' } },
  });
  await store.until(() => world.taints('arm-1').length === 1, 'the taint that a person took off');

  world.configure({ taintArchitectures: [] });
  await time.advance(10_000);
  await store.until(() => world.taints('arm-1').length + world.taints('arm-2').length === 0, 'no taint');
  world.depose();
  await done;
  t.equal(time.pending, 0);
});

void t.test('who does not lead shows no nodes', async (t) => {
  const world = await startWorld(t);
  putNode(world.store, 'arm-1', 'arm64');
  await world.settled();
  const shown = (state: string): Promise<number | undefined> =>
    world.series(`archwright_taint_nodes{state="${state}"}`);
  const time = createFakeClock();
  const down = world.store.fault(/^PATCH /, { status: 503 });
  const done = taints({ sleep: time.sleep, random: () => 1 })(world.leading);
  await world.store.until(() =>
    world.lines.some((line) => line.includes('taints could not be brought up to date')),
  );
  t.equal(await shown('waiting'), 1);
  down();
  world.depose();
  await done;
  t.equal(await shown('waiting'), 0);
});
