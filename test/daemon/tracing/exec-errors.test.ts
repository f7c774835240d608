/** Errors in a FIFO as in the kernel's `trace_pipe`, and control groups in files. */
import { execFileSync } from 'node:child_process';
import { constants, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ExecErrors } from '../../../daemon/tracing/exec-errors.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const minute = 60_000;
const uid = '0b6c4b9e-6f5d-4c1e-9d55-0f5f2a1d9a77';
const idOf = (digit: string): string => digit.repeat(64);
const container = (digit: string) => ({ pod: uid, container: idOf(digit) });
const line = (pid: number, name: string, event: string): string =>
  `${name.padStart(16)}-${String(pid).padEnd(7)} [000] .....  12.345678: ${event}\n`;
const failure = (pid: number, name = 'sh'): string => line(pid, name, 'sys_execve -> 0xfffffffffffffff8');
const fork = (parent: number, child: number): string =>
  line(parent, 'sh', `sched_process_fork: comm=sh pid=${parent} child_comm=sh child_pid=${child}`);

async function setup(t: Test) {
  const directory = t.testdir({ proc: {} });
  const pipe = join(directory, 'trace_pipe');
  const forks = join(directory, 'trace');
  const proc = join(directory, 'proc');
  execFileSync('mkfifo', [pipe]);
  const kernel = await open(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  const failures = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  t.teardown(() => Promise.all([kernel.close(), failures.close()]));
  const clock = createFakeClock();
  const errors = new ExecErrors({ failures, forks, proc, clock });
  return {
    errors,
    clock,
    kernel,
    forks,
    /** Starts a process in a container, or outside. */
    run: (pid: number, digit?: string): void => {
      mkdirSync(join(proc, String(pid)), { recursive: true });
      const path = digit === undefined ? '/init.scope' : `/kubepods/pod${uid}/${idOf(digit)}`;
      writeFileSync(join(proc, String(pid), 'cgroup'), `0::${path}\n`);
    },
    end: (pid: number): void => rmSync(join(proc, String(pid)), { recursive: true }),
    /** Lines that the kernel writes, then what is known. */
    after: async (...lines: readonly string[]) => {
      await kernel.write(lines.join(''));
      await errors.check();
      return errors.current();
    },
  };
}

t.test('a process leads to its container; lines come in pieces', async (t) => {
  const { errors, run, after } = await setup(t);
  await errors.check();
  t.strictSame(errors.current(), [], 'nothing yet');
  run(10, 'a');
  run(11);
  t.strictSame(await after(failure(10).slice(0, 40)), []);
  t.strictSame(await after(failure(10).slice(40)), [{ ...container('a'), program: 'sh' }]);
  t.equal(
    (await after(failure(11), failure(12), '# a comment\n', failure(10))).length,
    1,
    'of the host; gone',
  );
  t.equal((await after(failure(10, '<...>'), failure(10, 'make'))).length, 2, 'another program');
});

t.test('programs that a runtime starts are left out', async (t) => {
  const { run, after } = await setup(t);
  run(10, 'a');
  t.strictSame(await after(failure(10, 'runc:[2:INIT]'), failure(10, 'crun')), []);
});

t.test('a child that has ended leads to its parent, or to the parent of that', async (t) => {
  const { run, end, forks, after } = await setup(t);
  run(10, 'a');
  run(20, 'b');
  writeFileSync(forks, `# tracer: nop\n${fork(20, 12)}${fork(10, 11)}${fork(11, 12)}${fork(12, 11)}`);
  t.strictSame(await after(failure(11, '<...>')), [container('a')], 'numbers that were used again');
  end(10);
  writeFileSync(forks, `${fork(10, 11)}${fork(20, 10)}`);
  run(10, 'b');
  t.equal((await after(failure(11))).length, 1, 'the parent has ended; another process has its number');
  t.equal((await after(failure(10))).length, 2);
});

for (const digit of ['a', undefined])
  t.test(`a loop in ${digit ? 'a' : 'no'} container does not hide single errors of others`, async (t) => {
    const { run, forks, after } = await setup(t);
    run(10, digit);
    run(20, 'b');
    const children = Array.from({ length: 300 }, (_, index) => 1000 + index);
    writeFileSync(forks, [...children.map((pid) => fork(10, pid)), fork(20, 21)].join(''));
    const found = await after(...children.map((pid) => failure(pid, 'loop')), failure(21));
    t.strictSame(found, [
      ...(digit ? [{ ...container(digit), program: 'loop' }] : []),
      { ...container('b'), program: 'sh' },
    ]);
  });

t.test('forks are read twice a second; errors wait for that', async (t) => {
  const { run, forks, clock, after, errors } = await setup(t);
  run(10, 'a');
  writeFileSync(forks, fork(10, 11));
  for (let read = 0; read < 4; read += 1) await after(failure(12));
  t.strictSame(await after(failure(11)), []);
  await clock.advance(500);
  await errors.check();
  t.equal(errors.current().length, 1);
});

t.test('an error is forgotten ten minutes after it happened last', async (t) => {
  const { run, clock, after, errors } = await setup(t);
  run(10, 'a');
  await after(failure(10));
  await clock.advance(9 * minute);
  await after(failure(10));
  await clock.advance(9 * minute);
  t.equal(errors.current().length, 1);
  await clock.advance(2 * minute);
  t.equal(errors.current().length, 0);
});

t.test('one container has three programs, a node thirty errors; a flood has few lookups', async (t) => {
  const { run, clock, after } = await setup(t);
  run(10, 'a');
  run(20, 'b');
  await after(failure(20));
  for (const name of ['a', 'b', 'c', 'd']) {
    await clock.advance(500);
    await after(failure(10, name));
  }
  t.strictSame(
    (await after()).map(({ program }) => program),
    ['sh', 'a', 'b', 'c'],
  );
  const pids = Array.from({ length: 120 }, (_, index) => 1000 + index);
  for (const [index, pid] of pids.entries()) run(pid, index < 100 ? 'c' : 'd');
  await clock.advance(minute);
  const flooded = await after(...pids.map((pid) => failure(pid)));
  t.strictSame(new Set(flooded.map((error) => error.container[0])), new Set(['b', 'a', 'c']));
  for (const digit of '0123456789abcdef') {
    run(30, digit);
    for (const name of ['x', 'y', 'z']) {
      await clock.advance(500);
      await after(failure(30, name));
    }
  }
  t.equal((await after()).length, 30);
});
