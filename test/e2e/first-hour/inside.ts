/** Runs in the box: the story from the first command of README.md to the last. */
import assert from 'node:assert/strict';
import type { Programs } from '../box/programs.ts';
import { nothingForbidden } from '../helm/leaving.ts';
import { followLogs } from '../helm/logs.ts';
import { step, tellLogs } from '../helm/report.ts';
import { startFirstHour } from './cluster.ts';
import { noAgents } from './no-agents.ts';
import { expectCode, openReadme } from './readme.ts';
import { rightCredentials } from './right-credentials.ts';
import { wrongCredentials } from './wrong-credentials.ts';

async function main(): Promise<void> {
  const programs = JSON.parse(process.env['PROGRAMS'] ?? '') as Programs;
  const logs = followLogs();
  try {
    const world = await step('a cluster with a real node', () =>
      startFirstHour(programs, process.env['CGROUP'] ?? ''),
    );
    const readme = openReadme(world, process.env['LAYOUT'] ?? '');
    await step('our image is pushed', async () => expectCode(await readme.run('skopeo copy'), 0));
    await noAgents(world, readme);
    await wrongCredentials(world, readme);
    await rightCredentials(world, readme);
    await step('every command of README.md was run', () => assert.deepEqual(readme.left(), []));
    await step('no request was refused for a missing right', () => nothingForbidden(logs));
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
