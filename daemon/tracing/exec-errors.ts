/**
 * Finds programs in containers that the node cannot execute: the kernel's trace has each `execve` that fails
 * with ENOEXEC, with the thread that called it. Its control group leads to the container. A child that has
 * ended since then has none; its parent is found in a second trace, of forks, which is read only then.
 *
 * Containers can cause any number of such errors: the kernel's buffers, reads, and everything kept here are
 * bounded, and a container that floods them hides only errors.
 */
import type { FileHandle } from 'node:fs/promises';
import { BoundedMap } from '../../src/async/bounded-map.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createRateLimiter, type RateLimiter } from '../../src/async/rate-limiter.ts';
import { errnoOf, FileError, readBounded } from '../../src/files/read.ts';
import { ifError } from '../../src/async/if-error.ts';
import { maxExecErrors, type ExecError } from '../../src/nodes/exec-report.ts';
import { childIn, isFailedExec, parseCgroup, parseTraceLine } from './trace-lines.ts';

/** Of one round: some 800 lines. The rest waits in the kernel. */
const maxRoundBytes = 64 * 1024;
/** A line has some 80 bytes. */
const maxLineBytes = 4096;
/** Twelve lines in version 1, one in version 2; a path has up to 4 KiB. */
const maxCgroupBytes = 64 * 1024;
/** The text of 1 MiB of forks (`tracing.ts`) has about 2 MiB. */
const maxForksBytes = 8 * 1024 * 1024;
/** Threads that are looked up. */
const lookups = { perSecond: 20, burst: 40 };
/** Reading forks costs some milliseconds. */
const forkReads = { perSecond: 1, burst: 2 };
/** A shell in a shell in a shell. */
const maxAncestors = 8;
/** Of runc and crun, which start the container's own program: its status says that it failed. */
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
  readonly #lookups: RateLimiter;
  readonly #forkReads: RateLimiter;
  readonly #found = new BoundedMap<string, { readonly error: ExecError; readonly at: number }>(maxExecErrors);
  /** The beginning of a line whose end was not read yet. */
  #rest = '';

  constructor(options: ExecErrorsOptions) {
    const { clock } = options;
    this.#options = options;
    this.#lookups = createRateLimiter({ ...lookups, clock });
    this.#forkReads = createRateLimiter({ ...forkReads, clock });
  }

  /** Errors of the last ten minutes, one for each program of a container. */
  current(): readonly ExecError[] {
    const oldest = this.#options.clock.monotonic() - keptMs;
    for (const [key, { at }] of this.#found) if (at < oldest) this.#found.delete(key);
    return [...this.#found.values()].map(({ error }) => error);
  }

  /** Reads what is new. @throws the error of the file system */
  async check(): Promise<void> {
    const failed = new Map<number, string | undefined>();
    for (const line of await this.#newLines()) {
      const parsed = parseTraceLine(line);
      if (parsed && isFailedExec(parsed) && !runtimes.has(parsed.program))
        failed.set(parsed.pid, parsed.program);
    }
    let parents: ReadonlyMap<number, number> | undefined;
    for (const [pid, program] of failed) {
      if (this.#lookups.tryTake() > 0) return;
      let process: number | undefined = pid;
      let cgroup = await this.#cgroupOf(pid);
      for (let step = 0; cgroup === undefined && step < maxAncestors; step += 1) {
        parents ??= await this.#parents();
        process = parents.get(process);
        if (process === undefined) break;
        cgroup = await this.#cgroupOf(process);
      }
      const container = parseCgroup(cgroup ?? '');
      if (container) this.#keep({ ...container, ...(program !== undefined && { program }) });
    }
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

  /** The parent of each process that was forked lately. The file is in the order of time: the last one counts. */
  async #parents(): Promise<ReadonlyMap<number, number>> {
    const parents = new Map<number, number>();
    if (this.#forkReads.tryTake() > 0) return parents;
    const text = await readIfPossible(this.#options.forks, maxForksBytes);
    for (const line of text?.split('\n') ?? []) {
      const parsed = parseTraceLine(line);
      const child = parsed && childIn(parsed);
      if (parsed && child !== undefined) parents.set(child, parsed.pid);
    }
    return parents;
  }

  /** @returns `undefined`: the process has ended */
  #cgroupOf(pid: number): Promise<string | undefined> {
    return readIfPossible(`${this.#options.proc}/${pid}/cgroup`, maxCgroupBytes);
  }
}

async function readIfPossible(path: string, maxBytes: number): Promise<string | undefined> {
  const bytes = await readBounded(path, { maxBytes }).catch(ifError(FileError, () => undefined));
  return bytes?.toString('latin1');
}
