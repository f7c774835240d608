/**
 * Finds programs in containers that the node cannot execute: the kernel's trace has each `execve` that fails
 * with ENOEXEC, with the thread that called it. Most of these end at once, so their ancestors lead to the
 * container: a second trace has forks, and is read only then.
 *
 * Containers can cause any number of such errors: the kernel's buffers, reads, and everything kept here are
 * bounded. All children of one process cost one lookup, so a program in a loop hides few other errors.
 */
import type { FileHandle } from 'node:fs/promises';
import { BoundedMap } from '../../src/async/bounded-map.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createRateLimiter, type RateLimiter } from '../../src/async/rate-limiter.ts';
import { errnoOf } from '../../src/files/read.ts';
import { maxExecErrors, type ExecError } from '../../src/nodes/exec-report.ts';
import { kernelText } from '../machine/machine.ts';

/** One round reads some 800 lines. The rest waits in the kernel. */
const maxRoundBytes = 64 * 1024;
/** A line has some 80 bytes. */
const maxLineBytes = 4096;
/** Twelve lines in version 1, one in version 2; a path has up to 4 KiB. */
const maxCgroupBytes = 64 * 1024;
/** The text of forks is nearly three times as long as the kernel's buffers (`tracing.ts`). */
const maxForksBytes = 16 * 1024 * 1024;
/** Reading forks costs some milliseconds. */
const forkReads = { perSecond: 2, burst: 4 };
/** Processes that are looked up after each read of forks. */
const maxLookups = 100;
/** Children of one process among them: those of a loop outside of containers lead nowhere. */
const maxLookupsOfParent = 10;
/** Errors that wait for the next read of forks. The kernel's trace is read no faster. */
const maxWaiting = 4096;
/** A shell in a shell in a shell. */
const maxAncestors = 8;
/** Names of runc and crun, which start the container's own program: its status says that it failed. */
const runtimes: ReadonlySet<string | undefined> = new Set(['runc:[2:INIT]', 'crun']);
const maxProgramsOfContainer = 3;
/** Controllers read the report once a minute, in a large cluster every some minutes. */
const keptMs = 10 * 60_000;

export interface ExecErrorsOptions {
  /** `trace_pipe` of the instance with errors, opened without blocking. The caller closes it. */
  readonly failures: Pick<FileHandle, 'read'>;
  /** `trace` of the instance with forks. */
  readonly forks: string;
  /** Directory of the node's procfs. */
  readonly proc: string;
  readonly clock: Clock;
}

export class ExecErrors {
  readonly #options: ExecErrorsOptions;
  readonly #buffer = Buffer.allocUnsafe(16 * 1024);
  readonly #forkReads: RateLimiter;
  readonly #found = new BoundedMap<string, { readonly error: ExecError; readonly at: number }>(maxExecErrors);
  /** Names of programs that failed, by their thread. */
  readonly #waiting = new BoundedMap<number, string | undefined>(maxWaiting);
  /** The beginning of a line whose end was not read yet. */
  #rest = '';

  constructor(options: ExecErrorsOptions) {
    this.#options = options;
    this.#forkReads = createRateLimiter({ ...forkReads, clock: options.clock });
  }

  /** Errors of the last ten minutes, one for each program of a container. */
  current(): readonly ExecError[] {
    const oldest = this.#options.clock.monotonic() - keptMs;
    for (const [key, { at }] of this.#found) if (at < oldest) this.#found.delete(key);
    return [...this.#found.values()].map(({ error }) => error);
  }

  /** Reads what is new. @throws the error of the file system */
  async check(): Promise<void> {
    for (const line of await this.#newLines()) {
      const failed = parseFailedExec(line);
      if (failed && !runtimes.has(failed.program)) this.#waiting.set(failed.pid, failed.program);
    }
    if (this.#waiting.size === 0 || this.#forkReads.takeOrDelayMs() > 0) return;
    const processes = parseForks((await kernelText(this.#options.forks, maxForksBytes)) ?? '');
    const containers = new Map<Process, Container | undefined>();
    const lookups = new Map<Process, number>();
    for (const [pid, program] of this.#waiting)
      for (const process of familyOf(processes.get(pid) ?? { pid })) {
        if (!containers.has(process)) {
          const parent = process.parent ?? process;
          const count = lookups.get(parent) ?? 0;
          if (containers.size >= maxLookups || count >= maxLookupsOfParent) break;
          lookups.set(parent, count + 1);
          const isLast = (processes.get(process.pid) ?? process) === process;
          containers.set(process, isLast ? await this.#containerOf(process) : undefined);
        }
        const container = containers.get(process);
        if (container === undefined) continue;
        this.#keep({ ...container, ...(program !== undefined && { program }) });
        break;
      }
    this.#waiting.clear();
  }

  #keep(error: ExecError): void {
    const key = `${error.container} ${error.program}`;
    const known = [...this.#found.values()].filter((each) => each.error.container === error.container);
    if (known.length < maxProgramsOfContainer || this.#found.has(key))
      this.#found.set(key, { error, at: this.#options.clock.monotonic() });
  }

  async #newLines(): Promise<readonly string[]> {
    let text = this.#rest;
    for (let total = 0; total < maxRoundBytes;) {
      const { bytesRead } = await this.#options.failures
        .read(this.#buffer, 0, this.#buffer.length, null)
        .catch((error: unknown) => {
          if (errnoOf(error) !== 'EAGAIN') throw error;
          return { bytesRead: 0 };
        });
      if (bytesRead === 0) break;
      text += this.#buffer.toString('latin1', 0, bytesRead);
      total += bytesRead;
    }
    const lines = text.split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, maxLineBytes);
    return lines;
  }

  /** @returns `undefined` if the process has ended, or runs outside of containers */
  async #containerOf({ pid }: Process): Promise<Container | undefined> {
    return parseCgroup((await kernelText(`${this.#options.proc}/${pid}/cgroup`, maxCgroupBytes)) ?? '');
  }
}

/** Begins with the oldest ancestor: many processes have the same. */
function familyOf(process: Process): readonly Process[] {
  const family: Process[] = [];
  for (let each: Process | undefined = process; each && family.length <= maxAncestors; each = each.parent)
    family.unshift(each);
  return family;
}

// The kernel's texts: lines of a trace (Documentation/trace/ftrace.rst, "Output format") and the file `cgroup` of
// a process. Programs choose their own names, which may hold any bytes but NUL, also line ends.

type Container = Omit<ExecError, 'program'>;

interface FailedExec {
  /** ID of the thread. */
  readonly pid: number;
  /** Name of the process, printable; `undefined` if the kernel has forgotten it. */
  readonly program: string | undefined;
}

/** The name is right-aligned in 16 bytes (kernel/trace/trace_output.c), so it cannot forge what follows. */
const nameBytes = 16;
/**
 * `-PID [CPU] flags time: event`. A global option of the kernel adds the group of threads, others leave out
 * flags. The instance has only failures with ENOEXEC: its filter is `ret == -8`.
 */
const afterName =
  /^-(\d{1,10}) +(?:\( *[\d-]+\) +)?\[\d+\] +(?:\S+ +)?\d+\.\d+: sys_execve(?:at)? -> 0x[0-9a-f]+$/;

/** @param line each character is a byte (latin1) @returns `undefined` for comments, and parts of lines */
export function parseFailedExec(line: string): FailedExec | undefined {
  const [, pid] = afterName.exec(line.slice(nameBytes)) ?? [];
  if (pid === undefined) return undefined;
  const name = line.slice(0, nameBytes).trimStart();
  const isKnown = name !== '' && name !== '<...>';
  const program = name.slice(0, nameBytes - 1).replaceAll(/[^\x20-\x7e]/g, '?');
  return { pid: Number(pid), program: isKnown ? program : undefined };
}

interface Process {
  readonly pid: number;
  /** `undefined`: it was forked before the trace begins. */
  readonly parent?: Process;
}

/** The name comes first here too. */
const fork = /^.{16}-(\d{1,10}) .*: sched_process_fork: .* child_pid=(\d{1,10})$/gm;

/**
 * @param text a trace of forks in the order of time, so numbers that were used again are told apart
 * @returns the last process of each number
 */
export function parseForks(text: string): ReadonlyMap<number, Process> {
  const processes = new Map<number, Process>();
  for (const [, by, child] of text.matchAll(fork)) {
    const parent = processes.get(Number(by)) ?? { pid: Number(by) };
    processes.set(parent.pid, parent).set(Number(child), { pid: Number(child), parent });
  }
  return processes;
}

/**
 * Control groups of a pod and its container, by the kubelet's drivers (pkg/kubelet/cm): with `cgroupfs`
 * `pod<uid>/<id>`, with `systemd` `…-pod<uid>.slice/cri-containerd-<id>.scope`, its UID with underscores.
 */
const containerGroup =
  /pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?[/:](?:[a-z-]{1,32}[-:])?([0-9a-f]{64})(?![0-9a-f])/;

/** @returns `undefined` for a process outside of pods, and for static pods, whose UID the API does not have */
export function parseCgroup(text: string): Container | undefined {
  const [, uid, container] = containerGroup.exec(text) ?? [];
  if (uid === undefined || container === undefined) return undefined;
  return { pod: uid.replaceAll('_', '-'), container };
}
