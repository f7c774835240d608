/**
 * Containers that may have ended because their binary is made for another architecture. Kubernetes has no status for that:
 * the container starts and ends at once, with the exit code 1 or 255 (runc before and after 1.2), and only its log says
 * `exec /app: exec format error`. Where the pod asks for `FallbackToLogsOnError` the same text is its termination message.
 */
import type { RunningContainer, RunningPod } from '../caches/caches.ts';

export interface Suspect {
  readonly container: string;
  /** As the pod writes it. */
  readonly image: string;
  /** Digest of what ran. */
  readonly digest: string;
  /** Whether the status says it already; else the log has to be read. */
  readonly certain: boolean;
  /** Whether that log is of the container before this one. */
  readonly previous: boolean;
}

/** What runc writes; nothing else may stand in the log, since the program never ran. */
const wholeText = /^exec \/?[^\n]{0,4096}: exec format error\s*$/;

const exitCodes: ReadonlySet<number | undefined> = new Set([1, 255]);

/** Whether a log or termination message is that of a program that could not be run. */
export function saysExecFormatError(text: string | undefined): boolean {
  return text !== undefined && wholeText.test(text);
}

/** The containers of a pod that are worth a look. */
export function suspectsOf(pod: RunningPod): readonly Suspect[] {
  if (pod.deleting) return [];
  return pod.containers.flatMap((container) => {
    const digest = /@(sha256:[0-9a-f]{64})$/.exec(container.imageID)?.[1];
    if (digest === undefined || container.ready || !exitCodes.has(container.exitCode)) return [];
    const certain = saysExecFormatError(container.message);
    // One crash is no pattern: reading logs costs the node's kubelet something.
    if (!certain && !crashesAgain(pod, container)) return [];
    const image = pod.images.find(({ usedBy }) => usedBy === container.name)?.image ?? container.image;
    return [
      {
        container: container.name,
        image,
        digest,
        certain,
        previous: container.reason === 'CrashLoopBackOff',
      },
    ];
  });
}

function crashesAgain(pod: RunningPod, { restartCount, reason }: RunningContainer): boolean {
  return pod.phase === 'Failed' || restartCount > 0 || reason === 'CrashLoopBackOff';
}
