/** Metrics of misplaced pods, and events on a pod and its workload, once for each cause. */
import type { ObjectReference } from '../../../kube/events/events.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import { counter, gauge } from '../../../telemetry/metrics.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { podReference, referenceOf } from '../../pods/workload.ts';
import { Reporter } from '../../report/reporter.ts';
import type { ImageWithoutArchitecture, MisplacedPod } from './misplaced-pod.ts';

export const misplacedPodsNow = gauge(
  'archwright_misplaced_pods',
  'Pods that are not ready, on a node with an architecture that their images lack.',
);

export const outcomes = [
  'evicted',
  'reported',
  'held',
  'again',
  'no-node',
  'no-architecture',
  'last-try',
  'unplaced',
  'pinned',
  'failed',
] as const;

export const misplacedPodsHandled = counter(
  'archwright_misplaced_pods_total',
  'Actions on misplaced pods: evicted; reported (misplacedPods is event); held (refused, for example by a PodDisruptionBudget); again (a successor is misplaced too); no-node, no-architecture (eviction would not help); last-try (a Job would fail); unplaced (apply the DaemonSet again); pinned (another controller chose the node); failed.',
  { outcome: outcomes },
);

export type Report = Exclude<(typeof outcomes)[number], 'failed'>;

/**
 * @returns records events, once for each report and workload; about evictions, once for each pod. `top`: the
 * workload, if it is known; `why`: the API server's answer, for `held`. Returns whether it is new
 */
export function createMisplacedEvents(leader: LeaderContext) {
  const { events, log } = leader;
  const reporter = new Reporter(leader);
  return (report: Report, misplaced: MisplacedPod, top?: ObjectReference, why?: string): boolean => {
    const { pod, architecture, images } = misplaced;
    const { namespace, name, uid } = pod;
    const owner = top ?? (pod.owner && referenceOf(namespace, pod.owner));
    const subject = report === 'evicted' || report === 'held' ? uid : (owner?.uid ?? uid);
    const key = JSON.stringify([report, subject, images.map(({ digest }) => digest).sort(), architecture]);
    if (!reporter.isDue(key, Infinity)) return false;
    const message = messageOf(report, misplaced, why);
    const reason = reasons[report] ?? 'MisplacedPod';
    const about = podReference(pod);
    for (const each of owner ? [about, owner] : [about])
      events.record(each, { type: 'Warning', reason, message });
    log.info({ namespace, pod: name, reason, message }, 'a pod is misplaced');
    return true;
  };
}

const reasons: Readonly<Partial<Record<Report, string>>> = {
  evicted: 'MisplacedPodEvicted',
  held: 'MisplacedPodHeld',
  again: 'MisplacedPodAgain',
};

function messageOf(report: Report, { pod, architecture, images }: MisplacedPod, why = ''): string {
  const which = listed(images, (image) => describe(image, pod.os), 500);
  const architectures = [...new Set(images.flatMap((each) => each.architectures))].join(', ');
  const ends: Readonly<Record<Report, string>> = {
    evicted: 'It is evicted, and its successor is placed on a node that can run it.',
    reported: 'It would be evicted under misplacedPods = "evict".',
    held: `Its eviction is refused for now: ${printable(why, 200)}`,
    again:
      'It is not evicted: its predecessor was evicted for the same cause. Check whether the webhook is called for the pods of this ' +
      'workload (namespace selector, labels, failures).',
    'no-node': `It is not evicted: no node that its successor could use has one of ${printable(architectures, 100)} and takes pods now.`,
    'no-architecture': 'It is not evicted: no architecture has all of its images.',
    'last-try':
      'It is not evicted: its Job counts that as a failure and would fail permanently. Create the Job again.',
    unplaced:
      'Its DaemonSet would create the next one on the same node, because the webhook did not place its template. This places the template, and ' +
      `restarts all of its pods: kubectl -n ${pod.namespace} rollout restart daemonset ${pod.owner?.name ?? ''}`,
    pinned:
      `It is not evicted: its ${pod.owner?.kind ?? 'controller'} chose this node, and would choose it again. Restrict the template of its ` +
      `pods by required node affinity: kubernetes.io/arch In [${printable(architectures, 100)}].`,
  };
  return `Pod ${pod.name} is not ready on node ${pod.node} (${architecture}): ${which}. ${ends[report]}`;
}

function describe({ image, architectures }: ImageWithoutArchitecture, os: string): string {
  return `${printable(image, maxImageBytes)} has ${printable(architectures.join(', ') || `no platform for ${os}`, 100)}`;
}
