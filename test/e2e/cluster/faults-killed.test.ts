/**
 * Controllers that die: at each step of deciding gated pods and of tainting nodes, then at random moments, with another one that
 * takes over. No pod is lost, and what a dead one left half done is done by the next.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { createRandom } from '../kubelet/random.ts';
import { startScene, type Scene } from './faults/scene.ts';
import type { NodeObject } from './nodes.ts';
import { waitFor } from './watch.ts';

const seed = Number(process.env['E2E_SEED'] ?? randomInt(2 ** 31));
const stopping = fileURLToPath(new URL('faults/stopping-controller.ts', import.meta.url));
const randomKills = 6;
const tainting = { 'taint-architectures': 's390x' };
const taintKey = 'arch.example/architecture';

/** Pods that chose their architecture themselves, so that nothing but the controller gives them a toleration. */
async function occupy(scene: Scene, name: string): Promise<void> {
  for (let index = 0; index < 3; index += 1) {
    await scene.cluster.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${name}-${index}` },
      spec: {
        nodeSelector: { 'kubernetes.io/arch': 's390x' },
        containers: [{ name: 'app', image: scene.images.push('occupant', ['s390x']) }],
      },
    });
  }
  await scene.pods.until('occupants run', (pods) =>
    [0, 1, 2].every((index) => pods.get(`default/${name}-${index}`)?.status?.phase === 'Running'),
  );
}

async function tainted(scene: Scene, wanted: boolean): Promise<void> {
  await waitFor<NodeObject>(scene.cluster.client, '/api/v1/nodes/s390x-0', (node) => {
    return (node?.spec?.taints ?? []).some(({ key }) => key === taintKey) === wanted;
  });
}

/** Takes the taints off again. */
async function untaint(scene: Scene): Promise<void> {
  const controller = await scene.controller({ name: 'untaints' });
  await tainted(scene, false);
  await controller.process.stop();
}

void t.test('a controller is killed at each step, and at random', async (t) => {
  t.comment(`E2E_SEED=${seed}`);
  const random = createRandom(seed);
  const scene = await startScene(t);
  const stepsFile = join(scene.cluster.directory, 'steps');

  // One that lives shows which steps there are.
  await occupy(scene, 'first');
  const first = await scene.controller({
    name: 'lives',
    entry: stopping,
    settings: tainting,
    env: { STEPS_FILE: stepsFile },
  });
  await tainted(scene, true);
  const calm = await scene.crowd({ name: 'calm', count: 40, withUnknown: true });
  await calm.gated();
  calm.release();
  await calm.end();
  await first.process.stop();
  await untaint(scene);
  const steps = [...new Set(readFileSync(stepsFile, 'utf8').split('\n').filter(Boolean))];
  t.comment(`steps: ${steps.join(' ')}`);

  for (const [index, step] of steps.entries()) {
    const taints = step.startsWith('taints/');
    if (taints) await occupy(scene, `occupant-${index}`);
    const options = taints ? { settings: tainting } : {};
    const victim = await scene.controller({
      name: `victim-${index}`,
      entry: stopping,
      env: { KILL_AT: step },
      ...options,
    });
    if (taints) {
      t.equal(await victim.process.ended, 'SIGKILL', `killed at ${step}`);
      const next = await scene.controller({ name: `next-${index}`, ...options });
      await tainted(scene, true);
      const exposed = [...scene.pods.objects.values()].filter(
        ({ spec }) =>
          spec.nodeName === 's390x-0' && !(spec.tolerations ?? []).some(({ key }) => key === taintKey),
      );
      t.same(exposed, [], `${step}: every pod of the node had its toleration before the taint`);
      await next.process.stop();
      await untaint(scene);
    } else {
      await scene.leader((name) => name === `victim-${index}`);
      const crowd = await scene.crowd({ name: `step-${index}`, count: 20 });
      await crowd.gated();
      crowd.release();
      t.equal(await victim.process.ended, 'SIGKILL', `killed at ${step}`);
      const next = await scene.controller({ name: `next-${index}` });
      await crowd.end();
      await next.process.stop();
    }
  }

  let victim = await scene.controller({ name: 'random-0' });
  await scene.leader((name) => name === 'random-0');
  const crowd = await scene.crowd({ name: 'random', count: 200, withUnknown: true });
  await crowd.gated();
  crowd.release();
  for (let kill = 1; kill <= randomKills; kill += 1) {
    const changes = 1 + random.below(60);
    const seen = await scene.changes(changes, 1000);
    t.comment(`killed after ${seen} of ${changes} changes`);
    await victim.process.stop();
    victim = await scene.controller({ name: `random-${kill}` });
    await scene.leader((name) => name === `random-${kill}`);
  }
  await crowd.end();
  await victim.process.stop();
  await scene.clean();
});
