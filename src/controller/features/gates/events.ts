/** Events about a gated pod, on the pod and on its workload. Texts are bounded and hold no secret. */
import { createRateLimiter, type RateLimiter } from '../../../async/rate-limiter.ts';
import { timeText } from '../../../kube/events/events.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import type { PlacementDecision } from '../../../placement/decision.ts';
import { uncheckedRecord } from '../../../placement/record/read.ts';
import { printable } from '../../../names/printable.ts';
import { describeUnknown } from '../../../placement/rules/images/unknown.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { Reporter } from '../../report/reporter.ts';
import { controllerOf } from '../../pods/workload.ts';

const maxListBytes = 200;
const maxWhyBytes = 700;

/** Ten thousand pods that wait must not take the room of other events. The next attempt for a pod tries again. */
const waiting = { perSecond: 5, burst: 50 };

export class GateEvents {
  readonly #reporter: Reporter;
  readonly #limiter: RateLimiter;

  constructor(leader: LeaderContext) {
    this.#reporter = new Reporter(leader);
    this.#limiter = createRateLimiter({ ...waiting, clock: leader.clock });
  }

  /**
   * The pod waits for its images.
   * @param until when it no longer waits; server time, milliseconds
   * @returns false if there are too many such events now
   */
  gated(pod: Pod, decision: PlacementDecision, until: number): boolean {
    if (this.#limiter.takeOrDelayMs() > 0) return false;
    const why = whyGated(decision);
    const text = `Scheduling gated until image platforms are known, at most until ${timeText(until)}`;
    const hasFailed = decision.images.some(({ facts }) => facts?.error !== undefined);
    this.#record(pod, 'Gated', `${text}: ${why}`, why, hasFailed ? 'Warning' : 'Normal');
    return true;
  }

  /** The images share no architecture: the pod stays pending. */
  noCommonArchitecture(pod: Pod, message: string): void {
    this.#record(pod, 'NoCommonArchitecture', message, message);
  }

  /** The pod's images have changed, and no architecture that was required before can run them. */
  contradiction(pod: Pod, before: readonly string[], now: readonly string[]): void {
    const text =
      `Created requiring ${listOf(before)}, but its images now run only on ${listOf(now)}. ` +
      'Requirements of a pod cannot be removed: recreate it';
    this.#record(pod, 'NoCommonArchitecture', text, text);
  }

  imageUnknown(pod: Pod, decision: PlacementDecision, waitedMs: number): void {
    const { required } = decision;
    const fallback = required === undefined ? 'any architecture' : listOf(required);
    const why = whyGated(decision);
    const waited = Math.round(waitedMs / 1000);
    const text = `Image platforms still unknown after ${waited} s; falling back to ${fallback}: ${why}`;
    this.#record(pod, 'ImageUnknown', text, `${fallback}: ${why}`);
  }

  placementFailed(pod: Pod, why: string): void {
    const text = 'Placement failed; the pod may run on any architecture';
    this.#record(pod, 'PlacementFailed', `${text}: ${printable(why, maxWhyBytes)}`, '');
  }

  /** The API server refuses every update of the pod. */
  gateStays(pod: Pod, why: string): void {
    if (!this.#reporter.isDue(`gate of ${pod.metadata?.uid}`)) return;
    this.#record(pod, 'PlacementFailed', `Scheduling gate not removed: ${printable(why, maxWhyBytes)}`, why);
  }

  #record(
    pod: Pod,
    reason: string,
    message: string,
    subject: string,
    type: 'Normal' | 'Warning' = 'Warning',
  ): void {
    const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
    this.#reporter.record(
      { namespace, name, uid, owner: controllerOf(pod) },
      { type, reason, message },
      subject,
    );
  }
}

/** Each image that is not known, and why. */
export function whyGated({ images }: PlacementDecision): string {
  return printable(describeUnknown(images), maxWhyBytes);
}

/** Why a pod that is pending since its creation cannot run, from the record in its annotation. */
export function describeRecorded(pod: Pod): string {
  const images = uncheckedRecord(pod).images.map(
    ([image, says]) => `${printable(image, maxListBytes)} has ${printable(says, maxListBytes) || 'none'}`,
  );
  return printable(
    `no architecture can run all images: ${images.join('; ') || 'see its annotation'}`,
    maxWhyBytes,
  );
}

function listOf(architectures: readonly string[]): string {
  return printable(architectures.join(', '), maxListBytes) || 'no architecture';
}
