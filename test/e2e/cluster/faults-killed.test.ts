/** Controllers are killed at each step of taints and gates, then at random. Successors finish the work. */
import t from 'tap';
import { createRandom, seedOfRun } from '../random.ts';
import type { Server } from './archwright/archwright.ts';
import type { PodGroup } from './faults/pod-group.ts';
import { nodes, startFaultTest, type FaultTest } from './faults/setup.ts';
import { killedAt } from './faults/steps.ts';
import { createKillableControllers, type KillableControllers } from './faults/killable-controllers.ts';
import type { NodeObject } from './control-plane/nodes.ts';
import { podOf } from './control-plane/pods.ts';

const seed = seedOfRun();
const randomKills = 6;
const tainting = { 'taint-architectures': 's390x' };
const taintKey = 'arch.example/architecture';

/** Pods with their own architecture selection: only the controller gives them a toleration. */
async function occupy(faultTest: FaultTest, name: string): Promise<void> {
  for (let index = 0; index < 3; index += 1) {
    const nodeSelector = { 'kubernetes.io/arch': 's390x' };
    const image = faultTest.images.push('occupant', ['s390x']);
    await faultTest.cluster.create(podOf(`${name}-${index}`, image, { nodeSelector }));
  }
  await faultTest.pods.until('occupants run', (pods) =>
    [0, 1, 2].every((index) => pods.get(`default/${name}-${index}`)?.status?.phase === 'Running'),
  );
}

/** Waits until each s390x node has its taint and its ownership annotation, or no node has any. */
async function untilTainted(faultTest: FaultTest, wanted: boolean): Promise<void> {
  for (const name of wanted ? ['s390x-0'] : nodes.map((node) => node.name)) {
    await faultTest.cluster.waitFor<NodeObject>(`/api/v1/nodes/${name}`, (node) => {
      const isTainted = (node?.spec?.taints ?? []).some(({ key }) => key === taintKey);
      const isNoted = node?.metadata?.annotations?.['arch.example/taint'] !== undefined;
      return isTainted === wanted && isNoted === wanted;
    });
  }
}

async function untaint(faultTest: FaultTest, killable: KillableControllers): Promise<void> {
  const controller = await killable.live('untaints');
  await untilTainted(faultTest, false);
  await controller.process.stop();
}

async function createGatedGroup(faultTest: FaultTest, name: string, leader: string): Promise<PodGroup> {
  await faultTest.leader((now) => now === leader);
  const podGroup = await faultTest.podGroup({ name, count: 20 });
  await podGroup.releaseGated();
  return podGroup;
}

void t.test(
  'taints and gates are completed when a controller is killed at each step, and at random',
  async (t) => {
    t.comment(`E2E_SEED=${seed}`);
    const random = createRandom(seed);
    const faultTest = await startFaultTest(t);
    const killable = createKillableControllers(t, faultTest.cluster.directory, (options) =>
      faultTest.controller(options),
    );

    // A controller that is not killed does all of it.
    await occupy(faultTest, 'first');
    const first = await killable.live('lives', { settings: tainting });
    await untilTainted(faultTest, true);
    await faultTest.placesPods({ name: 'calm', count: 40, withUnknown: true });
    await first.process.stop();
    await untaint(faultTest, killable);

    for (const [index, step] of killedAt.taints.entries()) {
      const isOff = step === 'taints/cleared';
      const settings = isOff ? {} : tainting;
      if (!isOff) await occupy(faultTest, `occupant-${index}`);
      else {
        const taints = await killable.live('taints', { settings: tainting });
        await untilTainted(faultTest, true);
        await taints.process.stop();
      }
      await killable.kill(step, { settings });
      const next = await killable.live(`next-${index}`, { settings });
      await faultTest.leader((name) => name === `next-${index}`);
      await untilTainted(faultTest, !isOff);
      const exposed = [...faultTest.pods.objects.values()].filter(
        ({ spec }) =>
          !isOff &&
          spec.nodeName === 's390x-0' &&
          !(spec.tolerations ?? []).some(({ key }) => key === taintKey),
      );
      t.same(exposed, [], `${step}: every pod of the node had its toleration before the taint`);
      await next.process.stop();
      if (!isOff) await untaint(faultTest, killable);
    }

    for (const [index, step] of killedAt.gates.entries()) {
      let podGroup: PodGroup | undefined;
      await killable.kill(step, {
        meanwhile: async (name) => void (podGroup = await createGatedGroup(faultTest, `step-${index}`, name)),
      });
      const next = await killable.live(`opens-${index}`);
      await podGroup?.end();
      await next.process.stop();
    }

    killable.expectKilledAtEach('gates', 'taints');

    // All run from the beginning, as replicas do: the time that a program takes to start does not count.
    const replicas = new Map<string, Server>();
    for (let index = 0; index <= randomKills; index += 1)
      replicas.set(`random-${index}`, await faultTest.controller({ name: `random-${index}` }));
    let leader = await faultTest.leader((name) => replicas.has(name));
    const podGroup = await faultTest.podGroup({ name: 'random', count: 200, withUnknown: true });
    await podGroup.releaseGated();
    while (replicas.size > 1) {
      const changes = 1 + random.below(60);
      const seen = await faultTest.changes(changes, 1000);
      t.comment(`${leader} is killed after ${seen} of ${changes} changes`);
      await replicas.get(leader)?.process.stop();
      replicas.delete(leader);
      leader = await faultTest.leader((name) => replicas.has(name));
    }
    await podGroup.end();
    await replicas.get(leader)?.process.stop();
    await faultTest.clean();
  },
);
