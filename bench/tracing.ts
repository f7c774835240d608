/**
 * The cost of `execFormatErrorTracing`, by hand as root, on a machine with gcc:
 *
 *   unshare --mount sh -c 'mount -t tracefs tracefs /sys/kernel/tracing; node bench/tracing.ts'
 *
 * CPU time of programs that start others or call the kernel, with and without tracing in turn, so that other
 * load hits both; the median of the differences. Then the CPU time of this process, which traces as an agent
 * does, while a program is started 1,000 times a second: one that runs, and one that cannot.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startTracing } from '../daemon/tracing/tracing.ts';
import { systemClock } from '../src/async/clock.ts';
import { createLog } from '../src/telemetry/log.ts';

/** `starts COUNT RATE PROGRAM`, `calls COUNT`: prints the nanoseconds of CPU time of one. `RATE`: of a second. */
const worker = `#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static double used(int who) {
  struct rusage u;
  getrusage(who, &u);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}
int main(int argc, char **argv) {
  long count = atol(argv[2]);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long i = 0; i < count; i++) {
    if (argc < 5) { syscall(SYS_getppid); continue; }
    char *arguments[] = {argv[4], 0};
    pid_t pid;
    if (posix_spawn(&pid, argv[4], 0, 0, arguments, environ) == 0) waitpid(pid, 0, 0);
    if (!atol(argv[3])) continue;
    next.tv_nsec += 1000000000 / atol(argv[3]);
    if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
  }
  printf("%f", (used(RUSAGE_SELF) + used(RUSAGE_CHILDREN)) / count);
}
`;

const rounds = 15;
const directory = mkdtempSync(join(tmpdir(), 'archwright-tracing-'));
const path = (name: string): string => join(directory, name);

function compile(name: string, source: string, ...flags: readonly string[]): void {
  writeFileSync(path(`${name}.c`), source);
  execFileSync('gcc', ['-O2', '-static', ...flags, '-o', path(name), path(`${name}.c`)]);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const trace = () =>
  startTracing('/sys/kernel/tracing/instances', '/proc', systemClock, createLog({ level: 'error' }));

/** Nanoseconds of CPU time of one, without tracing and what tracing adds. */
async function compare(...args: readonly string[]): Promise<string> {
  const run = (): number => Number(execFileSync(path('worker'), args, { encoding: 'utf8' }));
  const pairs: (readonly [number, number])[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const without = run();
    const tracing = await trace();
    if (tracing.report().state !== 'on') throw new Error('this kernel cannot trace; see the log');
    pairs.push([without, run()]);
    await tracing.close();
  }
  const base = median(pairs.map(([without]) => without));
  const added = median(pairs.map(([without, traced]) => traced - without));
  return `${base.toFixed(0)} ns, with tracing ${added >= 0 ? '+' : ''}${added.toFixed(0)} ns`;
}

/** CPU time of this process while another starts a program again and again; share of one processor. */
async function own(program?: string): Promise<string> {
  const tracing = await trace();
  await pause(1000);
  const child = program && spawn(path('worker'), ['starts', '1000000000', '1000', path(program)]);
  const before = process.cpuUsage();
  const forksBefore = startedProcesses();
  const started = performance.now();
  await pause(10_000);
  const ms = performance.now() - started;
  const { user, system } = process.cpuUsage(before);
  const rate = ((startedProcesses() - forksBefore) / ms) * 1000;
  if (child) {
    child.kill();
    await once(child, 'close');
  }
  await tracing.close();
  return `${((user + system) / 10 / ms).toFixed(2)} % of a processor, at ${rate.toFixed(0)} forks a second`;
}

function startedProcesses(): number {
  return Number(/^processes (\d+)/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);
}

try {
  compile('worker', worker);
  compile('works', '#include <unistd.h>\nvoid _start(void) { _exit(0); }', '-nostartfiles');
  const foreign = Buffer.alloc(120);
  foreign.write('\u007FELF', 'latin1');
  writeFileSync(path('foreign'), foreign);
  chmodSync(path('foreign'), 0o755);
  process.stdout.write(`start of a program: ${await compare('starts', '1000', '0', path('works'))}\n`);
  process.stdout.write(`system call: ${await compare('calls', '3000000')}\n`);
  process.stdout.write(`the agent, nothing started: ${await own()}\n`);
  process.stdout.write(`the agent, programs that run: ${await own('works')}\n`);
  process.stdout.write(`the agent, programs that cannot run: ${await own('foreign')}\n`);
} finally {
  rmSync(directory, { recursive: true });
}
