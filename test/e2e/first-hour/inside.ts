/** Runs in the box: README.md from the first command to the last. */
import assert from 'node:assert/strict';
import { expectNothingForbidden } from '../helm/leaving.ts';
import { step } from '../helm/report.ts';
import { runInsideBox } from '../helm/inside-box.ts';
import { startFirstHour } from './cluster.ts';
import { noAgents } from './no-agents.ts';
import { expectCode, openReadme } from './readme.ts';
import { rightCredentials } from './right-credentials.ts';
import { wrongCredentials } from './wrong-credentials.ts';

await runInsideBox(async (programs, cgroup, logs) => {
  const world = await step('a cluster with a real node', () => startFirstHour(programs, cgroup));
  const readme = openReadme(world, process.env['LAYOUT'] ?? '');
  await step('our image is pushed', async () => expectCode(await readme.run('skopeo copy'), 0));
  await noAgents(world, readme);
  await wrongCredentials(world, readme);
  await rightCredentials(world, readme);
  await step('every command of README.md was run', () => assert.deepEqual(readme.left(), []));
  await step('no request was refused for a missing right', () => expectNothingForbidden(logs));
});
