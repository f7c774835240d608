/** Controllers are killed at each step of taints and gates, then at random. Successors finish the work. */
import t from 'tap';
import { createRandom, seedOfRun } from '../random.ts';
import type { Server } from './archwright.ts';
import type { Crowd } from './faults/crowd.ts';
import { nodes, startScene, type Scene } from './faults/scene.ts';
import { killedAt } from './faults/steps.ts';
import { createVictims, type Victims } from './faults/victims.ts';
import type { NodeObject } from './nodes.ts';
import { podOf } from './pods.ts';

const seed = seedOfRun();
const randomKills = 6;
const tainting = { 'taint-architectures': 's390x' };
const taintKey = 'arch.example/architecture';

/** Pods with their own architecture selection: only the controller gives them a toleration. */
async function occupy(scene: Scene, name: string): Promise<void> {
  for (let index = 0; index < 3; index += 1) {
    const nodeSelector = { 'kubernetes.io/arch': 's390x' };
    const image = scene.images.push('occupant', ['s390x']);
    await scene.cluster.create(podOf(`${name}-${index}`, image, { nodeSelector }));
  }
  await scene.pods.until('occupants run', (pods) =>
    [0, 1, 2].every((index) => pods.get(`default/${name}-${index}`)?.status?.phase === 'Running'),
  );
}

/** Waits until each s390x node has its taint and its ownership annotation, or no node has any. */
async function tainted(scene: Scene, wanted: boolean): Promise<void> {
  for (const name of wanted ? ['s390x-0'] : nodes.map((node) => node.name)) {
    await scene.cluster.waitFor<NodeObject>(`/api/v1/nodes/${name}`, (node) => {
      const isTainted = (node?.spec?.taints ?? []).some(({ key }) => key === taintKey);
      const isNoted = node?.metadata?.annotations?.['arch.example/taint'] !== undefined;
      return isTainted === wanted && isNoted === wanted;
    });
  }
}

async function untaint(scene: Scene, victims: Victims): Promise<void> {
  const controller = await victims.live('untaints');
  await tainted(scene, false);
  await controller.process.stop();
}

async function withCrowd(scene: Scene, name: string, leader: string): Promise<Crowd> {
  await scene.leader((now) => now === leader);
  const crowd = await scene.crowd({ name, count: 20 });
  await crowd.releaseGated();
  return crowd;
}

void t.test('a controller is killed at each step, and at random', async (t) => {
  t.comment(`E2E_SEED=${seed}`);
  const random = createRandom(seed);
  const scene = await startScene(t);
  const victims = createVictims(t, scene.cluster.directory, (options) => scene.controller(options));

  // A controller that is not killed does all of it.
  await occupy(scene, 'first');
  const first = await victims.live('lives', tainting);
  await tainted(scene, true);
  await scene.placesCrowd({ name: 'calm', count: 40, withUnknown: true });
  await first.process.stop();
  await untaint(scene, victims);

  for (const [index, step] of killedAt.taints.entries()) {
    const isOff = step === 'taints/cleared';
    const settings = isOff ? {} : tainting;
    if (!isOff) await occupy(scene, `occupant-${index}`);
    else {
      const taints = await victims.live('taints', tainting);
      await tainted(scene, true);
      await taints.process.stop();
    }
    await victims.kill(step, { settings });
    const next = await victims.live(`next-${index}`, settings);
    await scene.leader((name) => name === `next-${index}`);
    await tainted(scene, !isOff);
    const exposed = [...scene.pods.objects.values()].filter(
      ({ spec }) =>
        !isOff &&
        spec.nodeName === 's390x-0' &&
        !(spec.tolerations ?? []).some(({ key }) => key === taintKey),
    );
    t.same(exposed, [], `${step}: every pod of the node had its toleration before the taint`);
    await next.process.stop();
    if (!isOff) await untaint(scene, victims);
  }

  for (const [index, step] of killedAt.gates.entries()) {
    let crowd: Crowd | undefined;
    await victims.kill(step, {
      meanwhile: async (name) => void (crowd = await withCrowd(scene, `step-${index}`, name)),
    });
    const next = await victims.live(`opens-${index}`);
    await crowd?.end();
    await next.process.stop();
  }

  victims.killedAtEach('gates', 'taints');

  // All run from the beginning, as replicas do: the time that a program takes to start does not count.
  const replicas = new Map<string, Server>();
  for (let index = 0; index <= randomKills; index += 1)
    replicas.set(`random-${index}`, await scene.controller({ name: `random-${index}` }));
  let leader = await scene.leader((name) => replicas.has(name));
  const crowd = await scene.crowd({ name: 'random', count: 200, withUnknown: true });
  await crowd.releaseGated();
  while (replicas.size > 1) {
    const changes = 1 + random.below(60);
    const seen = await scene.changes(changes, 1000);
    t.comment(`${leader} is killed after ${seen} of ${changes} changes`);
    await replicas.get(leader)?.process.stop();
    replicas.delete(leader);
    leader = await scene.leader((name) => replicas.has(name));
  }
  await crowd.end();
  await replicas.get(leader)?.process.stop();
  await scene.clean();
});
