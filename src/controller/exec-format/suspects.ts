/**
 * Containers that may have failed because their binary is for another architecture. Kubernetes has no status for that: the container
 * exits at once, with code 1 or 255 (runc before and after 1.2), and only its log says `exec /app: exec format error`. With
 * `FallbackToLogsOnError` the same text is the termination message.
 */
import type { RunningContainer, RunningPod } from '../caches/cached.ts';
import { withoutScheme } from '../scope/pulled-images.ts';

export interface Suspect {
  readonly container: string;
  readonly image: string;
  readonly digest: string;
  /** Reference by digest to what was pulled. */
  readonly pulled: string;
  /** Whether the termination message says it. Otherwise the log decides. */
  readonly certain: boolean;
  /** Whether the log of the previous container is needed. */
  readonly previous: boolean;
}

/** The message of runc. The log has nothing else, because the program never ran. */
const wholeText = /^exec \/?[^\n]{0,4096}: exec format error\s*$/;

const exitCodes: ReadonlySet<number | undefined> = new Set([1, 255]);

export function isExecFormatError(text: string | undefined): boolean {
  return text !== undefined && wholeText.test(text);
}

export function suspectsOf(pod: RunningPod): readonly Suspect[] {
  if (pod.deleting) return [];
  return pod.containers.flatMap((container) => {
    const digest = /@(sha256:[0-9a-f]{64})$/.exec(container.imageID)?.[1];
    if (digest === undefined || container.ready || !exitCodes.has(container.exitCode)) return [];
    const certain = isExecFormatError(container.message);
    // Not for one crash: reading logs costs the node's kubelet something.
    if (!certain && !crashesAgain(pod, container)) return [];
    const image = pod.images.find(({ usedBy }) => usedBy === container.name)?.image ?? container.image;
    const previous = container.reason === 'CrashLoopBackOff';
    const pulled = withoutScheme(container.imageID);
    return [{ container: container.name, image, digest, pulled, certain, previous }];
  });
}

function crashesAgain(pod: RunningPod, { restartCount, reason }: RunningContainer): boolean {
  return pod.phase === 'Failed' || restartCount > 0 || reason === 'CrashLoopBackOff';
}
