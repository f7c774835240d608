/**
 * Containers that may have failed because their binary is for another architecture or CPU. Kubernetes has no
 * status for that: the container exits at once, and only its log says `exec /app: exec format error`, or a
 * message of a missing CPU level. With `FallbackToLogsOnError`, the termination message has the same text.
 */
import { amd64Levels } from '../../nodes/amd64-level.ts';
import type { Amd64Level } from '../../nodes/node-class.ts';
import type { RunningContainer, RunningPod } from '../state/cached.ts';
import { withoutScheme } from './pulled-images.ts';

/** `higher`: than that of the node. The program names no level. */
export type MissedLevel = Amd64Level | 'higher';

export type ProgramFailure =
  { readonly kind: 'exec-format' } | { readonly kind: 'cpu-level'; readonly missed: MissedLevel };

export interface Suspect {
  readonly container: string;
  readonly image: string;
  readonly digest: string;
  /** Pulled reference, by digest. */
  readonly pulled: string;
  /** What the termination message says. Absent: the log decides. */
  readonly failure?: ProgramFailure;
  /** Whether the log of the previous container is needed. */
  readonly previous: boolean;
}

const named: readonly RegExp[] = [
  // glibc sysdeps/x86/dl-get-cpu-features.c: glibc is built for the level, as in UBI 9 (v2) and UBI 10 (v3).
  /^Fatal glibc error: CPU does not support x86-64-v([2-4])$/,
  // Go src/runtime/asm_amd64.s bad_cpu_msg: the program is built with GOAMD64.
  /^This program can only be run on AMD64 processors with v([2-4]) microarchitecture support\.$/,
];
/** glibc sysdeps/x86/dl-prop.h: linked with `-z x86-64-v3`. A path and the program's prefix precede it. */
const unnamed = /: CPU ISA level is lower than required$/;

/** The last such line counts. */
function missedLevelIn(text: string): MissedLevel | undefined {
  for (const line of text.split('\n').reverse()) {
    const end = line.trimEnd();
    const digit = named.map((form) => form.exec(end)?.[1]).find(Boolean);
    if (digit !== undefined) return amd64Levels.find((level) => String(level) === digit);
    if (unnamed.test(end)) return 'higher';
  }
  return undefined;
}

/** The message of runc. The log has nothing else, because the program never ran. */
const wholeText = /^exec \/?[^\n]{0,4096}: exec format error\s*$/;

/** 1 and 255: runc before and after 1.2. 1: Go, and programs that load a library. 127: glibc. */
const exitCodes: ReadonlySet<number | undefined> = new Set([1, 127, 255]);

/** @param text a termination message, or the end of a log */
export function failureIn(text: string | undefined): ProgramFailure | undefined {
  if (text === undefined) return undefined;
  if (wholeText.test(text)) return { kind: 'exec-format' };
  const missed = missedLevelIn(text);
  return missed && { kind: 'cpu-level', missed };
}

export function suspectsOf(pod: RunningPod): readonly Suspect[] {
  if (pod.deleting) return [];
  return pod.containers.flatMap((container) => {
    const digest = /@(sha256:[0-9a-f]{64})$/.exec(container.imageID)?.[1];
    if (digest === undefined || container.ready || !exitCodes.has(container.exitCode)) return [];
    const failure = failureIn(container.message);
    // Not for one crash: reading logs costs the node's kubelet something.
    if (!failure && !crashesAgain(pod, container)) return [];
    const image = pod.images.find(({ usedBy }) => usedBy === container.name)?.image ?? container.image;
    const previous = container.reason === 'CrashLoopBackOff';
    const pulled = withoutScheme(container.imageID);
    return [{ container: container.name, image, digest, pulled, ...(failure && { failure }), previous }];
  });
}

function crashesAgain(pod: RunningPod, { restartCount, reason }: RunningContainer): boolean {
  return pod.phase === 'Failed' || restartCount > 0 || reason === 'CrashLoopBackOff';
}
