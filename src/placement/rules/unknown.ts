/**
 * Unknown images: not asked yet, or an inspection that failed. What the known images share is an upper bound and is
 * required even so. Then by policy:
 * - `gate`: the scheduling gate holds the pod until its images are known. A template has no gate, so it is only bounded.
 *   Where all that is unknown is no image at all, waiting helps nobody: the fallback applies at once, and the node says what
 *   it can do with it.
 * - `fallback`: the fallback architecture, where the bound and the schedulable architectures have it; else the bound.
 * - `allow`: the bound alone.
 * - `deny`: refused; the message names each unknown image and why.
 *
 * A DaemonSet's template lives for years and is decided again at every update. Where its images are the same as before,
 * what was required then stands in for what cannot be asked now, so that a registry's outage rolls out nothing.
 */
import type { Policy } from '../../policy/effective/policy.ts';
import { intersection } from './required.ts';
import type { ImageVerdict, PlacementInput, Recorded } from '../decision.ts';
import type { Draft } from './draft.ts';
import { reason } from './rules.ts';
import { listed, maxImageBytes, printable } from '../../names/printable.ts';

const maxMessageBytes = 2048;

/** `image: unauthorized: …` for each image that is not known, bounded. */
export function describeUnknown(images: readonly ImageVerdict[]): string {
  const unknown = images.filter((image) => image.unknown !== undefined);
  return listed(unknown, describe, maxMessageBytes);
}

function describe({ image, unknown, facts }: ImageVerdict): string {
  const name = printable(image, maxImageBytes);
  if (facts?.error === undefined) return `${name}: not inspected yet`;
  return `${name}: ${unknown ?? facts.error.code}: ${printable(facts.error.message, 160)}`;
}

/**
 * The decision where an image is unknown.
 * @param bound architectures that the known images share; `undefined`: they say nothing. Never empty
 */
export function unknownImage(
  input: Pick<PlacementInput, 'policy' | 'template'>,
  images: readonly ImageVerdict[],
  bound: readonly string[] | undefined,
): Draft {
  const { policy } = input;
  const why = describeUnknown(images);
  if (policy.onUnknownImage === 'deny') {
    const message = `images could not be inspected: ${why}`;
    const reasons = [reason('unknown-image-deny', message)];
    return { outcome: 'denied', required: bound, message, warnings: [], reasons };
  }
  const warnings = failures(images);
  const isInVain = policy.onUnknownImage === 'gate' && input.template === undefined && !mayBeKnown(images);
  if (policy.onUnknownImage === 'fallback' || isInVain) {
    const reasons = [reason('unknown-image-fallback', why)];
    return { outcome: 'fallback', required: fallbackWithin(policy, bound), warnings, reasons };
  }
  if (policy.onUnknownImage === 'gate' && input.template === undefined) {
    const reasons = [reason('unknown-image-gate', why)];
    return { outcome: 'gated', required: bound, gate: true, warnings, reasons };
  }
  return {
    outcome: 'allowed-unknown',
    required: bound,
    warnings,
    reasons: [reason('unknown-image-allow', why)],
  };
}

/** A registry that says that something is no image was asked with success: its digest will never be another thing. */
function mayBeKnown(images: readonly ImageVerdict[]): boolean {
  return images.some(({ unknown }) => unknown !== undefined && unknown !== 'not-an-image');
}

function fallbackWithin(policy: Policy, bound: readonly string[] | undefined): readonly string[] | undefined {
  const fallback = policy.fallbackArchitecture;
  if (fallback === undefined) return bound;
  const { schedulableArchitectures } = policy;
  if (schedulableArchitectures.length > 0 && !schedulableArchitectures.includes(fallback)) return bound;
  return bound === undefined || bound.includes(fallback) ? [fallback] : bound;
}

/** One that was not asked yet is no news; one that a registry refused is, to whoever owns the pod. */
function failures(images: readonly ImageVerdict[]): readonly string[] {
  return images
    .filter((image) => image.unknown !== undefined && image.facts?.error !== undefined)
    .map((image) => `archwright: image ${describe(image)}`);
}

/**
 * The bound for a DaemonSet whose images are unknown now and were decided before.
 * @returns `undefined` where the record does not help
 */
export function recordedBound(
  input: Pick<PlacementInput, 'template'>,
  recorded: Recorded | undefined,
  imagesKey: string,
  bound: readonly string[] | undefined,
): readonly string[] | undefined {
  if (input.template !== 'DaemonSet' || recorded?.imagesKey !== imagesKey) return undefined;
  const { architectures } = recorded;
  if (architectures === undefined || architectures.length === 0) return undefined;
  const both = bound === undefined ? architectures : intersection(architectures, bound);
  return both.length === 0 ? undefined : both;
}
