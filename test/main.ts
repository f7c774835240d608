/**
 * Every unit test. A room is a folder beside this file. `--test-arg=ROOM` chooses rooms. Small rooms share a process,
 * because starting one and loading modules takes half a second of CPU.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { compileCache } from './support/compile-cache.ts';

/** A process that takes longer than this hangs. */
const timeout = 600_000;

/** These start programs, measure memory, share a server between tests, or take long. */
const alone = new Set([
  'cmd',
  'controller',
  'daemon',
  'examples',
  'recorded',
  'scripts',
  'security',
  'support',
]);

const chosen = process.argv.slice(2);
const rooms = readdirSync(new URL('.', import.meta.url), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'e2e')
  .map(({ name }) => name)
  .filter((name) => chosen.length === 0 || chosen.includes(name));

const isCovered = process.env['TAP_DISABLE_COVERAGE'] !== '1';

/** Coverage of cached modules is less exact (documentation of `module.enableCompileCache`). */
const cache = isCovered ? {} : compileCache;

/** tap's loaders double what a start costs, also of each program that a test starts. Coverage needs them. */
const [command, ...args] = isCovered
  ? [process.execPath, ...process.execArgv]
  : ['env', '-u', 'NODE_OPTIONS', process.execPath];

t.setTimeout(0);
t.jobs = Number(process.env['TAP_JOBS'] ?? 1);
const runner = fileURLToPath(new URL('support/room.ts', import.meta.url));
const { small = [], ...others } = Object.groupBy(rooms, (room) => (alone.has(room) ? room : 'small'));
for (const [name, together = []] of Object.entries({ small, ...others })) {
  if (together.length === 0) continue;
  void t.spawn(
    command ?? '',
    [...args, runner, ...together],
    {
      env: { ...process.env, ...cache, TAP_TIMEOUT: String(timeout / 1000) },
      timeout,
      buffered: t.jobs > 1,
    },
    name,
  );
}
