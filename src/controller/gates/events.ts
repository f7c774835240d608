/** Events for the owner of a gated pod. Texts are bounded and hold no secret. */
import type { EventRecorder } from '../../kube/events/events.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { PlacementDecision } from '../../placement/decision.ts';
import { recordedImages } from '../../placement/record/read.ts';
import { printable } from '../../names/printable.ts';
import { describeUnknown } from '../../placement/rules/unknown.ts';

const maxListBytes = 200;
const maxWhyBytes = 700;

export class GateEvents {
  readonly #events: EventRecorder;

  constructor(events: EventRecorder) {
    this.#events = events;
  }

  /** The images share no architecture: the pod stays pending. */
  noCommonArchitecture(pod: Pod, message: string): void {
    this.#warn(pod, 'NoCommonArchitecture', message);
  }

  /** The pod's images have changed, and no architecture that was required before can run them. */
  contradiction(pod: Pod, before: readonly string[], now: readonly string[]): void {
    const text =
      `required ${listOf(before)} when it was created, its images can only run on ${listOf(now)} now; ` +
      'requirements cannot be removed from a pod: create it again';
    this.#warn(pod, 'NoCommonArchitecture', text);
  }

  imageUnknown(pod: Pod, { required, images }: PlacementDecision, waitedMs: number): void {
    const where = required === undefined ? 'on any architecture' : `on ${listOf(required)}`;
    const why = printable(describeUnknown(images), maxWhyBytes);
    const waited = Math.round(waitedMs / 1000);
    this.#warn(pod, 'ImageUnknown', `not known after ${waited} s, so it may run ${where}: ${why}`);
  }

  placementFailed(pod: Pod, why: string): void {
    const text = 'its architecture could not be required, so it may run anywhere';
    this.#warn(pod, 'PlacementFailed', `${text}: ${printable(why, maxWhyBytes)}`);
  }

  #warn({ metadata = {} }: Pod, reason: string, message: string): void {
    const { namespace, name = '', uid, resourceVersion } = metadata;
    const about = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid, resourceVersion };
    this.#events.record(about, { type: 'Warning', reason, message });
  }
}

/** Why a pod that is pending since its creation cannot run, from the record in its annotation. */
export function describeRecorded(pod: Pod): string {
  const images = recordedImages(pod).map(
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
