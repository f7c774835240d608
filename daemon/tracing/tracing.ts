/**
 * Traces programs that the node cannot execute, in two instances of the kernel's tracing: directories with own
 * buffers and events, which exist until they are removed. A kernel that cannot do this is no error.
 */
import { constants } from 'node:fs';
import { mkdir, open, rmdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/async/clock.ts';
import { errnoOf } from '../../src/files/read.ts';
import { messageOf } from '../../src/names/printable.ts';
import type { ExecReport, TracingState } from '../../src/nodes/exec-report.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { kernelText } from '../machine/machine.ts';
import { ExecErrors } from './exec-errors.ts';

/** -8: ENOEXEC, a file with a format that the kernel does not know (include/uapi/asm-generic/errno-base.h). */
const failures = {
  events: ['syscalls/sys_exit_execve', 'syscalls/sys_exit_execveat'],
  filter: 'ret == -8',
  bufferKb: 64,
};
/** Some 23 forks have one KiB. They are read at most half a second after a program failed. */
const forks = {
  events: ['sched/sched_process_fork'],
  filter: '',
  bufferKb: Math.max(16, Math.floor(256 / cpus().length)),
};
/** If the program, its parent and their parents end sooner, their pod is not found. */
const roundMs = 100;

/**
 * Starts tracing. Never throws: the report says if the kernel refuses.
 * @param instances the node's `/sys/kernel/tracing/instances`, or an empty directory
 * @param proc the node's `/proc`
 */
export async function startTracing(instances: string, proc: string, clock: Clock, log: Log) {
  const failuresPath = join(instances, 'archwright-exec');
  const forksPath = join(instances, 'archwright-forks');
  const opened = new AsyncDisposableStack();
  const ending = new AbortController();
  let state: TracingState = 'on';
  let errors: ExecErrors | undefined;
  const fail = (error: unknown): void => {
    if (ending.signal.aborted) return;
    state = stateOf(error);
    log.warn({ state, error: messageOf(error) }, 'programs that fail later will go undetected');
  };
  try {
    // The trace has PIDs of the first namespace, where the second process is the parent of kernel threads.
    if ((await kernelText(join(proc, '2/comm'), 64)) !== 'kthreadd\n') throw new NestedNode();
    for (const [path, events] of [
      [failuresPath, failures],
      [forksPath, forks],
    ] as const) {
      opened.defer(() => rmdir(path).catch(() => undefined));
      await record(path, events);
    }
    const pipe = await open(join(failuresPath, 'trace_pipe'), constants.O_RDONLY | constants.O_NONBLOCK);
    opened.defer(() => pipe.close());
    errors = new ExecErrors({ failures: pipe, forks: join(forksPath, 'trace'), proc, clock });
    const running = run(errors, clock, ending.signal).catch(fail);
    opened.defer(() => {
      ending.abort();
      return running;
    });
    log.info('tracing programs that cannot be executed');
  } catch (error) {
    fail(error);
    await opened.disposeAsync();
  }
  return {
    report: (): ExecReport => ({ state, errors: errors?.current() ?? [] }),
    close: () => opened.disposeAsync(),
  };
}

class NestedNode extends Error {
  override readonly message = 'the node has its own PID namespace, so processes in traces are unknown';
}

/** Makes an instance that records these events; when its buffer is full, the oldest are overwritten. */
async function record(path: string, { events, filter, bufferKb }: typeof forks): Promise<void> {
  // What a crash left.
  await rmdir(path).catch(() => undefined);
  await mkdir(path);
  const set = (name: string, value: string) => writeFile(join(path, name), value, { flag: 'r+' });
  // First, because a directory that is no instance has no such file.
  await set('buffer_size_kb', String(bufferKb));
  for (const event of events) {
    if (filter !== '') await set(`events/${event}/filter`, filter);
    await set(`events/${event}/enable`, '1');
  }
}

async function run(errors: ExecErrors, clock: Clock, signal: AbortSignal): Promise<never> {
  for (;;) {
    await errors.check();
    await clock.sleep(roundMs, signal);
  }
}

function stateOf(error: unknown): TracingState {
  if (error instanceof NestedNode) return 'nested';
  const errno = errnoOf(error) ?? '';
  if (['EACCES', 'EPERM', 'EROFS'].includes(errno)) return 'refused';
  if (errno !== 'ENOENT') return 'failed';
  return messageOf(error).includes('/events/') ? 'no-events' : 'no-tracefs';
}
