/** The program of a box with a real node: reports each step, and the logs after a failure. */
import type { Programs } from '../box/programs.ts';
import { followLogs, type Followed } from './logs.ts';
import { reportLogs } from './report.ts';

/** @param run gets the paths of programs, the control group, and the logs of archwright's containers */
export async function runInsideBox(
  run: (programs: Programs, cgroup: string, logs: Followed) => Promise<void>,
): Promise<void> {
  const { env } = process;
  const logs = followLogs();
  try {
    await run(JSON.parse(env['PROGRAMS'] ?? '') as Programs, env['CGROUP'] ?? '', logs);
  } catch (error) {
    process.stderr.write(`${(error as Error).stack ?? String(error)}\n`);
    process.exitCode = 1;
  } finally {
    if (process.exitCode === 1 || env['ARCHWRIGHT_E2E_KEEP'] !== undefined)
      reportLogs({ 'archwright.log': logs.text() });
    logs.stop();
  }
  // Other processes end with the box. Standard output must be flushed before.
  process.stdout.write('', () => process.exit());
}
