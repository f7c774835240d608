/**
 * Texts of the kernel: lines of a trace (Documentation/trace/ftrace.rst, "Output format") and the file
 * `cgroup` of a process. Programs choose their own names, which may hold any bytes but NUL, also line ends.
 */
import type { ExecError } from '../../src/nodes/exec-report.ts';

export type Container = Omit<ExecError, 'program'>;

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

export interface Process {
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
