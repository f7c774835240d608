/**
 * Runs all tests of a room in one process: `node test/support/room.ts placement`. Starting a process and
 * loading modules costs more than most test files. Files run one after the other, sorted by path. With several
 * rooms, folders and files of `test/`, each file runs once, when it is named first.
 */
import './no-async-hooks.ts';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';

const cwd = fileURLToPath(new URL('..', import.meta.url));

/** A test that takes longer counts as hanging. The others go on. */
const testTimeoutMs = 300_000;

/** The innermost running test. An uncaught error ends it. The others go on. */
let running: Test = t;
process.on('uncaughtException', (error) => running.threw(error));

function follow(test: Test): void {
  test.on('subtestStart', (child) => {
    child.setTimeout(testTimeoutMs);
    running = child as Test;
    child.once('end', () => (running = test));
    follow(child as Test);
  });
}
follow(t);

/** By default it is named after the arguments, which are too long for a name if they are many files. */
t.testdirName = `${cwd}../.tap/fixtures/room-${process.pid}`;

const files = process.argv
  .slice(2)
  .flatMap((name) => globSync(name.endsWith('.ts') ? name : `${name}/**/*.test.ts`, { cwd }).sort());
for (const file of new Set(files)) {
  const before = process.cpuUsage();
  t.comment(`test/${file}`);
  await import(pathToFileURL(`${cwd}${file}`).href);
  if (!t.idle) await once(t, 'idle');
  const { user, system } = process.cpuUsage(before);
  t.comment(`${Math.round((user + system) / 1000)} ms of CPU: test/${file}`);
}
