/** Runs in the box: starts a cluster, then installs archwright by Helm 4, by Helm 3, and without Helm. */
import { features } from './features.ts';
import { followLogs } from './logs.ts';
import type { Programs } from '../box/programs.ts';
import { step, tellLogs } from './report.ts';
import { createHelm } from './release.ts';
import { lateImage } from './late-image.ts';
import { restricted } from './restricted.ts';
import { withoutHelm } from './without-helm.ts';
import { wholeLife } from './whole-life.ts';
import { prepareNamespace, startWorld } from './world.ts';

async function main(): Promise<void> {
  const programs = JSON.parse(process.env['PROGRAMS'] ?? '') as Programs;
  const logs = followLogs();
  try {
    const world = await step('a cluster with a real node', () =>
      startWorld(programs, process.env['CGROUP'] ?? ''),
    );
    const { cluster, registries, own } = world;
    await prepareNamespace(world);
    await step('our image is pushed', () =>
      registries.copy(process.env['IMAGE'] ?? '', 'public', `${own.repository}:${own.tag}`),
    );
    await wholeLife(world, createHelm('helm4', cluster), logs);
    const helm3 = createHelm('helm3', cluster);
    await lateImage(world, helm3, logs);
    await features(world, helm3, logs);
    await restricted(world, helm3, logs);
    await withoutHelm(world, logs);
  } catch (error) {
    process.stderr.write(`${(error as Error).stack ?? String(error)}\n`);
    process.exitCode = 1;
  } finally {
    if (process.exitCode === 1 || process.env['ARCHWRIGHT_E2E_KEEP'] !== undefined)
      tellLogs({ 'archwright.log': logs.text() });
    logs.stop();
  }
}

await main();
// Other processes end with the box. Standard output must be flushed before.
process.stdout.write('', () => process.exit());
