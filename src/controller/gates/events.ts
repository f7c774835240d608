/** Events for the owner of a gated pod. Texts are bounded and hold no secret. */
import type { EventRecorder } from '../../kube/events/events.ts';
import type { Pod } from '../../kube/api/objects.ts';
import type { PlacementDecision } from '../../placement/decision.ts';
import { recordedImages } from '../../placement/record/read.ts';
import { printable } from '../../names/printable.ts';
import { describeUnknown } from '../../placement/rules/unknown.ts';

export interface GateEvents {
  /** The images share no architecture: the pod stays pending. */
  noCommonArchitecture(pod: Pod, message: string): void;
  /** The pod's images have changed, and no architecture that was required before can run them. */
  contradiction(pod: Pod, before: readonly string[], now: readonly string[]): void;
  /** The images did not become known in time. */
  imageUnknown(pod: Pod, decision: PlacementDecision, waitedMs: number): void;
  /** The API server refuses the placement. */
  placementFailed(pod: Pod, why: string): void;
}

const maxListBytes = 200;
const maxWhyBytes = 700;

export function createGateEvents(events: EventRecorder): GateEvents {
  function warn({ metadata = {} }: Pod, reason: string, message: string): void {
    const { namespace, name = '', uid, resourceVersion } = metadata;
    const about = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid, resourceVersion };
    events.record(about, { type: 'Warning', reason, message });
  }

  return {
    noCommonArchitecture: (pod, message) => {
      warn(pod, 'NoCommonArchitecture', message);
    },
    contradiction: (pod, before, now) => {
      const text =
        `required ${listOf(before)} when it was created, its images can only run on ${listOf(now)} now; ` +
        'requirements cannot be removed from a pod: create it again';
      warn(pod, 'NoCommonArchitecture', text);
    },
    imageUnknown: (pod, decision, waitedMs) => {
      const { required } = decision;
      const where = required === undefined ? 'on any architecture' : `on ${listOf(required)}`;
      const waited = `${Math.round(waitedMs / 1000)} s`;
      const why = printable(describeUnknown(decision.images), maxWhyBytes);
      warn(pod, 'ImageUnknown', `not known after ${waited}, so it may run ${where}: ${why}`);
    },
    placementFailed: (pod, why) => {
      const text = 'its architecture could not be required, so it may run anywhere';
      warn(pod, 'PlacementFailed', `${text}: ${printable(why, maxWhyBytes)}`);
    },
  };
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
