/**
 * Containers that may have failed because their binary is for another architecture or CPU. Kubernetes has no
 * status for that: the container exits at once, and only its log says `exec /app: exec format error`, or a
 * message of `cpu-level.ts`. With `FallbackToLogsOnError`, the termination message has the same text.
 */
import type { RunningContainer, RunningPod } from '../caches/cached.ts';
import { withoutScheme } from '../scope/pulled-images.ts';
import { missedLevelIn, type MissedLevel } from './cpu-level.ts';

export type Failure =
  { readonly kind: 'exec-format' } | { readonly kind: 'cpu-level'; readonly missed: MissedLevel };

export interface Suspect {
  readonly container: string;
  readonly image: string;
  readonly digest: string;
  /** Pulled reference, by digest. */
  readonly pulled: string;
  /** From the termination message. Absent: the log decides. */
  readonly failure?: Failure;
  /** Whether the log of the previous container is needed. */
  readonly previous: boolean;
}

/** The message of runc. The log has nothing else, because the program never ran. */
const wholeText = /^exec \/?[^\n]{0,4096}: exec format error\s*$/;

/** 1 and 255: runc before and after 1.2. 1: Go, and programs that load a library. 127: glibc. */
const exitCodes: ReadonlySet<number | undefined> = new Set([1, 127, 255]);

export function isExecFormatError(text: string | undefined): boolean {
  return text !== undefined && wholeText.test(text);
}

/** @param text a termination message, or the end of a log */
export function failureIn(text: string | undefined): Failure | undefined {
  if (isExecFormatError(text)) return { kind: 'exec-format' };
  const missed = text === undefined ? undefined : missedLevelIn(text);
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
