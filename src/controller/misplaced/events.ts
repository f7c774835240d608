/** Events on a misplaced pod and its workload, once for each cause. */
import type { ObjectReference } from '../../kube/events/event.ts';
import { listed, maxImageBytes, printable } from '../../names/printable.ts';
import type { RunningPod } from '../caches/caches.ts';
import type { Leading } from '../leadership/leading.ts';
import type { ImageWithoutArchitecture } from './missing-architectures.ts';

export interface Found {
  readonly pod: RunningPod;
  /** Of the node. */
  readonly architecture: string;
  readonly images: readonly ImageWithoutArchitecture[];
}

export type Told =
  'evicted' | 'told' | 'held' | 'again' | 'no-node' | 'no-architecture' | 'last-try' | 'unplaced';

export interface MisplacedEvents {
  /**
   * Records events; what was told of the same subject before is not told again, other than evictions.
   * @param top the workload, where it is known
   * @returns whether it is news
   */
  tell(told: Told, found: Found, top?: ObjectReference, why?: string): boolean;
}

const maxRemembered = 5000;

export function createMisplacedEvents({ events, log }: Pick<Leading, 'events' | 'log'>): MisplacedEvents {
  const before = new Set<string>();
  return {
    tell: (told, found, top, why) => {
      const { pod, architecture } = found;
      const owner = top ?? ownerOf(pod);
      const digests = found.images.map(({ digest }) => digest).sort();
      const subject = told === 'evicted' || told === 'held' ? pod.uid : (owner?.uid ?? pod.uid);
      const key = JSON.stringify([told, subject, digests, architecture]);
      if (before.has(key)) return false;
      before.add(key);
      const oldest = before.size > maxRemembered ? before.values().next().value : undefined;
      if (oldest !== undefined) before.delete(oldest);
      const message = messageOf(told, found, why);
      const reason = reasons[told];
      const about = { apiVersion: 'v1', kind: 'Pod', namespace: pod.namespace, name: pod.name, uid: pod.uid };
      for (const each of owner ? [about, owner] : [about])
        events.record(each, { type: 'Warning', reason, message });
      log.info({ namespace: pod.namespace, pod: pod.name, reason, message }, 'a pod is misplaced');
      return true;
    },
  };
}

const reasons: Readonly<Record<Told, string>> = {
  evicted: 'MisplacedPodEvicted',
  told: 'MisplacedPod',
  held: 'MisplacedPodHeld',
  again: 'MisplacedPodAgain',
  'no-node': 'MisplacedPod',
  'no-architecture': 'MisplacedPod',
  'last-try': 'MisplacedPod',
  unplaced: 'MisplacedPod',
};

function messageOf(told: Told, { pod, architecture, images }: Found, why = ''): string {
  const which = listed(images, describe, 500);
  const begin = `Pod ${pod.name} is not ready on node ${pod.node} (${architecture}): ${which}`;
  const ends: Readonly<Record<Told, string>> = {
    evicted: 'It is evicted, so that its successor is placed where it can run.',
    told: 'It would be evicted under misplacedPods = "evict".',
    held: `Its eviction is refused for now: ${printable(why, 200)}`,
    again:
      'It is not evicted: it is the successor of a pod that was, for the same cause. Does the webhook see the pods of this ' +
      'workload (namespace selector, labels, failures)?',
    'no-node': `It is not evicted: no node that its successor could use has one of ${printable(why, 100)} and takes pods now.`,
    'no-architecture': 'It is not evicted: no architecture has all of its images.',
    'last-try':
      'It is not evicted: its Job would count that as a failure, and ends for good with the next one. Create the Job again.',
    unplaced:
      'Its DaemonSet would make the next one for the same node: it was applied while the webhook did not see it. This has its ' +
      `template placed, and restarts all of its pods: kubectl -n ${pod.namespace} rollout restart daemonset ${pod.owner?.name ?? ''}`,
  };
  return `${begin}. ${ends[told]}`;
}

function describe({ image, architectures }: ImageWithoutArchitecture): string {
  return `${printable(image, maxImageBytes)} has ${printable(architectures.join(', ') || 'no platform for its OS', 100)}`;
}

function ownerOf({ namespace, owner }: RunningPod): ObjectReference | undefined {
  if (owner === undefined) return undefined;
  const { apiVersion, kind, name, uid } = owner;
  return { apiVersion, kind, namespace, name, uid };
}
