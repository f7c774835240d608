/** Errors in a FIFO as in the kernel's `trace_pipe`, and control groups in files. */
import { execFileSync } from 'node:child_process';
import { constants, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ExecErrors, parseCgroup, parseFailedExec, parseForks } from '../../../daemon/tracing/exec-errors.ts';
import { startTracing } from '../../../daemon/tracing/tracing.ts';
import { captureLog } from '../../support/captured.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const minute = 60_000;
const uid = '0b6c4b9e-6f5d-4c1e-9d55-0f5f2a1d9a77';
const idOf = (digit: string): string => digit.repeat(64);
const container = (digit: string) => ({ pod: uid, container: idOf(digit) });
/** @param name each character is a byte, as in the kernel's text */
const traced = (name: string, rest: string): string => `${name.padStart(16)}${rest}`;
const line = (pid: number, name: string, event: string): string =>
  traced(name, `-${String(pid).padEnd(7)} [000] .....  12.345678: ${event}\n`);
const execFailed = 'sys_execve -> 0xfffffffffffffff8';
const failure = (pid: number, name = 'sh'): string => line(pid, name, execFailed);
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

t.test('a line of a trace', async (t) => {
  t.strictSame(parseFailedExec(traced('sh', `-1234    [001] .....  4321.123456: ${execFailed}`)), {
    pid: 1234,
    program: 'sh',
  });
  // Global options of the kernel add the group of threads, and leave out the flags.
  t.equal(parseFailedExec(traced('sh', `-7       (   1234) [12] d..2. 1.5: ${execFailed}`))?.pid, 7);
  t.equal(parseFailedExec(traced('sh', `-7       (-------) [12] 1.5: ${execFailed}`))?.pid, 7);
  const after = `-7       [000] ..... 1.5: ${execFailed}`;
  t.strictSame(parseFailedExec(traced('<...>', after))?.program, undefined);
  t.equal(parseFailedExec(traced('my \xc3\xa4\x1b-app', after))?.program, 'my ???-app');
  for (const other of ['', '# tracer: nop', 'CPU:1 [LOST 12 EVENTS]', ` sh${after}`])
    t.equal(parseFailedExec(other), undefined, other);
});

t.test('a name cannot forge the thread', async (t) => {
  const after = `-1234    [001] ..... 4.1: `;
  // Fifteen bytes, as the kernel allows.
  t.equal(parseFailedExec(traced('-1 [0] . 1.5: x', `${after}${execFailed}`))?.pid, 1234);
  // A line end in a name makes two lines.
  for (const part of traced('a\n-1 [0] 1.5: x', `${after}${execFailed}`).split('\n'))
    t.equal(parseFailedExec(part), undefined, part);
  const name = 'x child_pid=1';
  const event = `sched_process_fork: comm=${name} pid=1234 child_comm=${name} child_pid=6`;
  t.strictSame(
    [...parseForks(traced(name, `${after}${event}`))],
    [
      [1234, { pid: 1234 }],
      [6, { pid: 6, parent: { pid: 1234 } }],
    ],
  );
});

t.test('other events', async (t) => {
  const after = `-1234    [001] ..... 4.1: `;
  t.equal(parseFailedExec(traced('sh', `${after}sys_execveat -> 0xfffffff8`))?.pid, 1234);
  t.equal(parseFailedExec(traced('sh', `${after}sys_execve(filename: 1)`)), undefined);
  t.equal(parseForks(traced('sh', `${after}${execFailed}`)).size, 0);
});

t.test('the container of a control group', async (t) => {
  const systemdUid = uid.replaceAll('-', '_');
  const found = container('a');
  for (const path of [
    `/kubepods/burstable/pod${uid}/${idOf('a')}`,
    `/kubepods/pod${uid}/${idOf('a')}/init.scope`,
    `/kubepods.slice/kubepods-pod${systemdUid}.slice/cri-containerd-${idOf('a')}.scope`,
    `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${systemdUid}.slice/crio-${idOf('a')}.scope/container`,
    `/system.slice/containerd.service/kubepods-burstable-pod${systemdUid}.slice:cri-containerd:${idOf('a')}`,
    // As a container sees it that has a namespace for control groups.
    `/../../pod${uid}/${idOf('a')}`,
    // A runtime in the container.
    `/kubepods/pod${uid}/${idOf('a')}/docker/${'c'.repeat(64)}`,
  ])
    t.strictSame(parseCgroup(`0::${path}\n`), found, path);
  t.strictSame(
    parseCgroup(`1:name=systemd:/\n12:memory:/kubepods/pod${uid}/${idOf('a')}\n`),
    found,
    'version 1',
  );
  for (const path of [
    '/',
    '/init.scope',
    `/docker/${idOf('a')}`,
    `/kubepods/pod${uid}`,
    `/kubepods/pod${'a'.repeat(32)}/${idOf('a')}`,
  ])
    t.equal(parseCgroup(`0::${path}\n`), undefined, path);
});

/** `bench/tracing.ts` needs a kernel that can. */
t.test('a kernel that cannot trace is no error, and nothing is left', async (t) => {
  const { log, lines } = captureLog();
  const hostRoot = t.testdir({ proc: { 2: { comm: 'sh\n' } } });
  const instances = join(hostRoot, 'instances');
  const state = async () => {
    const tracing = await startTracing(instances, join(hostRoot, 'proc'), createFakeClock(), log);
    await tracing.close();
    return tracing.report();
  };
  t.strictSame(await state(), { state: 'nested', errors: [] });
  writeFileSync(join(hostRoot, 'proc/2/comm'), 'kthreadd\n');
  t.strictSame(await state(), { state: 'no-tracefs', errors: [] }, 'no directory');
  // What a crash left.
  mkdirSync(join(instances, 'archwright-exec'), { recursive: true });
  t.strictSame(await state(), { state: 'no-tracefs', errors: [] }, 'a directory that is not tracefs');
  t.strictSame(readdirSync(instances), []);
  t.equal(lines.length, 3);
});
