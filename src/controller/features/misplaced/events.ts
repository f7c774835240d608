/** Events on a misplaced pod and its workload, once for each cause. */
import type { ObjectReference } from '../../../kube/events/event.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import { podReference, referenceOf } from '../../pods/workload.ts';
import { Reporter } from '../../report/reporter.ts';
import type { MisplacedOutcome } from './metrics.ts';
import type { ImageWithoutArchitecture, MisplacedPod } from './misplaced-pod.ts';

export type Report = Exclude<MisplacedOutcome, 'failed'>;

export class MisplacedEvents {
  readonly #leader: LeaderContext;
  readonly #reporter: Reporter;

  constructor(leader: LeaderContext) {
    this.#leader = leader;
    this.#reporter = new Reporter(leader);
  }

  /**
   * Records events, once for each report and workload; about evictions, once for each pod.
   * @param top the workload, if it is known
   * @param why the API server's answer, for `held`
   * @returns whether it is new
   */
  record(report: Report, misplaced: MisplacedPod, top?: ObjectReference, why?: string): boolean {
    const { pod, architecture, images } = misplaced;
    const { namespace, name, uid } = pod;
    const owner = top ?? (pod.owner && referenceOf(namespace, pod.owner));
    const subject = report === 'evicted' || report === 'held' ? uid : (owner?.uid ?? uid);
    const key = JSON.stringify([report, subject, images.map(({ digest }) => digest).sort(), architecture]);
    if (!this.#reporter.isDue(key, Infinity)) return false;
    const message = messageOf(report, misplaced, why);
    const reason = reasons[report] ?? 'MisplacedPod';
    const about = podReference(pod);
    for (const each of owner ? [about, owner] : [about])
      this.#leader.events.record(each, { type: 'Warning', reason, message });
    this.#leader.log.info({ namespace, pod: name, reason, message }, 'a pod is misplaced');
    return true;
  }
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
