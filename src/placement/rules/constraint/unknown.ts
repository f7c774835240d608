/**
 * Unknown images: not inspected yet, or an inspection that failed. The architectures that the known images
 * share are an upper bound and required even so. Then by policy:
 * - `gate`: the scheduling gate holds the pod until its images are known. A template is never gated. If all
 *   unknown images are `not-an-image` or refused by the configuration, waiting is pointless: the fallback
 *   applies at once, and the node reports the error.
 * - `fallback`: the fallback architecture, if the bound, the schedulable architectures and the pod's own
 *   terms have it; else as `allow`.
 * - `allow`: only the bound.
 * - `deny`: refused; the message names each unknown image and its error.
 *
 * For the template of a DaemonSet, only the bound is required: a fallback would stay in it. It is decided
 * again at every change, and at every update until all of its images are known. If its images are the same as
 * before, the recorded architectures stay in force, so that an outage of a registry rolls out no change.
 */
import type { ImageVerdict } from '../../decision.ts';
import { permittedBy } from '../../pod/terms.ts';
import { imagesKeyOf } from '../../record/write.ts';
import { intersection } from '../images/common.ts';
import { describeDetails, describeUnknown, isUnknown, warningsAbout } from '../images/unknown.ts';
import type { RuleInput } from '../input.ts';
import { draft, type Draft } from '../rules.ts';

/** @returns `undefined` if all images are known */
export function unknownImage(input: RuleInput): Draft | undefined {
  const { images, policy, common: bound } = input;
  if (!images.some(isUnknown)) return undefined;
  const before = recordedBound(input);
  if (before !== undefined) {
    const text = `the same images were placed on ${before.join(', ')} before`;
    return draft('placed', before, 'unknown-image-recorded', text);
  }
  const why = describeDetails(images);
  const warnings = warningsAbout(images);
  // The pods of the template are decided when they are created. The image may be pushed until then.
  if (input.template === 'workload')
    return draft('allowed-unknown', bound, 'unknown-image-allow', why, { warnings });
  if (policy.onUnknownImage === 'deny') {
    const message = `images could not be inspected: ${describeUnknown(images)}`;
    return draft('denied', bound, 'unknown-image-deny', `images could not be inspected: ${why}`, { message });
  }
  const isPod = input.template === undefined;
  const gates = isPod && policy.onUnknownImage === 'gate';
  if (isPod && (policy.onUnknownImage === 'fallback' || (gates && !mayBeKnown(images)))) {
    const fallback = fallbackWithin(input);
    if (fallback !== undefined)
      return draft('fallback', [fallback], 'unknown-image-fallback', why, { warnings });
  }
  return gates && mayBeKnown(images)
    ? draft('gated', bound, 'unknown-image-gate', why, { gate: true, warnings })
    : draft('allowed-unknown', bound, 'unknown-image-allow', why, { warnings });
}

/** `not-an-image` is final: the content of a digest never changes. So is a refusal by the configuration. */
function mayBeKnown(images: readonly ImageVerdict[]): boolean {
  return images.some(
    (image) => isUnknown(image) && image.unknown !== 'not-an-image' && image.facts?.source !== 'override',
  );
}

/** The fallback architecture, if the bound, the policy and the pod's own terms permit it. */
function fallbackWithin({ policy, common: bound, fields }: RuleInput): string | undefined {
  const { fallbackArchitecture: fallback, schedulableArchitectures } = policy;
  if (fallback === undefined || !permittedBy(fields.terms, fallback)) return undefined;
  if (schedulableArchitectures.length > 0 && !schedulableArchitectures.includes(fallback)) return undefined;
  return bound === undefined || bound.includes(fallback) ? fallback : undefined;
}

/** What a record of the same images required, for a DaemonSet with unknown ones. */
function recordedBound({
  template,
  os,
  images,
  common: bound,
  recorded,
}: RuleInput): readonly string[] | undefined {
  if (template !== 'DaemonSet') return undefined;
  if (!recorded?.architectures?.length || recorded.imagesKey !== imagesKeyOf(os, images)) return undefined;
  const { architectures } = recorded;
  const both = bound === undefined ? architectures : intersection(architectures, bound);
  return both.length === 0 ? undefined : both;
}
