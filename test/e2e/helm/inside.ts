/** Runs in the box: starts a cluster, then installs archwright by Helm 4, by Helm 3, and without Helm. */
import { wrongImage } from './failed-installs.ts';
import { features } from './features.ts';
import { step } from './report.ts';
import { createHelm } from './release.ts';
import { restricted } from './restricted.ts';
import { runInsideBox } from './inside-box.ts';
import { withoutHelm } from './without-helm.ts';
import { wholeLife } from './whole-life.ts';
import { prepareNamespace, startWorld } from './world.ts';

await runInsideBox(async (programs, cgroup, logs) => {
  const world = await step('a cluster with a real node', () => startWorld(programs, cgroup));
  const { cluster, registries, own } = world;
  await prepareNamespace(world);
  await step('our image is pushed', () =>
    registries.copy(process.env['IMAGE'] ?? '', 'public', `${own.repository}:${own.tag}`),
  );
  const [helm4, helm3] = [createHelm('helm4', cluster), createHelm('helm3', cluster)];
  await wrongImage(world, helm4);
  await wrongImage(world, helm3);
  await wholeLife(world, helm4, logs);
  await features(world, helm3, logs);
  await restricted(world, helm3, logs);
  await withoutHelm(world, logs);
});
