/**
 * Unknown images: not inspected yet, or an inspection that failed. The architectures that the known images
 * share are an upper bound and required even so. Then by policy:
 * - `gate`: the scheduling gate holds the pod until its images are known. A template is never gated. If all
 *   unknown images are `not-an-image` or refused by the configuration, waiting is pointless: the fallback
 *   applies at once, and the node reports the error.
 * - `fallback`: the fallback architecture, if the bound, the schedulable architectures and the pod's own
 *   terms have it; else the bound.
 * - `allow`: only the bound.
 * - `deny`: refused; the message names each unknown image and its error.
 *
 * For the template of a DaemonSet, only the bound is required: a fallback would stay in it. It is decided
 * again at every change, and at every update until all of its images are known. If its images are the same as
 * before, the recorded architectures stay in force, so that an outage of a registry rolls out no change.
 */
import type { FactsErrorCode, ImageFacts } from '../../images/facts/facts.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { imagesKeyOf } from '../record/hash.ts';
import { intersection } from './required.ts';
import type { ImageVerdict, OwnFields, PlacementInput, Recorded } from '../decision.ts';
import { permittedBy, type Terms } from '../pod/terms.ts';
import { draft, type Draft } from './rules.ts';
import { listed, maxImageBytes, printable } from '../../names/printable.ts';

const maxMessageBytes = 2048;

/** `image: unauthorized: …` for each unknown image, bounded, for people who create pods. */
export function describeUnknown(images: readonly ImageVerdict[]): string {
  return listed(images.filter(isUnknown), describe, maxMessageBytes);
}

/**
 * For people who create pods. The message of a failed lookup is only for the log and `explain`, because it
 * can reveal open ports, files of a node, proxies and agents.
 */
const publicTexts: ReadonlyMap<string, string> = new Map([
  ['not-found', 'the registry has no such image; check the name and the tag'],
  ['unauthorized', 'the registry requires a valid credential; check the pull secrets'],
  ['forbidden', 'access is not allowed; ask for access to the image or to the registry'],
  ['rate-limited', 'too many requests; archwright tries again'],
  ['unavailable', 'the registry cannot be reached or used now; archwright tries again'],
  ['not-an-image', 'it is not a container image'],
  ['too-large', 'its manifest or config is too large'],
]);

/** A closed port is unavailable, and a port behind a firewall times out: both have one name. */
export function publicCode(code: string): string {
  return code === 'timeout' ? 'unavailable' : code;
}

/** Facts as people who create pods may see them: of a failed lookup neither the message nor the endpoint. */
export function publicFacts(facts: ImageFacts): ImageFacts {
  const { image, error } = facts;
  if (error === undefined) return facts;
  const message = publicText({ image, unknown: error.code, facts });
  // Every code that `publicCode` returns is one of these.
  const code = publicCode(error.code) as FactsErrorCode;
  const hint = error.hint === undefined ? {} : { hint: error.hint };
  return { ...facts, endpoint: '', error: { code, message, ...hint } };
}

/** Overrides and references are the user's own texts. */
function publicText({ unknown, facts }: Pick<ImageVerdict, 'image' | 'unknown' | 'facts'>): string {
  const { code, message } = facts?.error ?? { code: unknown ?? 'unknown', message: '' };
  const isHarmless = facts?.source === 'override' || code === 'invalid-reference';
  if (isHarmless) return message;
  const text = publicTexts.get(publicCode(code)) ?? 'its manifest cannot be used';
  const hint = facts?.error?.hint;
  if (hint === undefined) return text;
  // Then no registry was asked.
  return code === 'unavailable' ? hint : `${hint} (${text})`;
}

function isUnknown({ unknown }: ImageVerdict): boolean {
  return unknown !== undefined;
}

function describe(image: ImageVerdict): string {
  return describeBy(image, publicText(image));
}

function describeDetail(image: ImageVerdict): string {
  const { message = '', hint } = image.facts?.error ?? {};
  return describeBy(image, hint === undefined || message.includes(hint) ? message : `${hint}; ${message}`);
}

function describeBy({ image, unknown, facts }: ImageVerdict, text: string): string {
  const name = printable(image, maxImageBytes);
  if (facts?.error === undefined) return `${name}: not inspected yet`;
  return `${name}: ${publicCode(unknown ?? facts.error.code)}: ${printable(text, 160)}`;
}

/**
 * @param bound architectures that the known images share, never empty; `undefined`: they constrain nothing
 * @returns `undefined` if all images are known
 */
export function unknownImage(
  input: PlacementInput,
  os: string,
  images: readonly ImageVerdict[],
  bound: readonly string[] | undefined,
  { terms }: OwnFields,
  recorded: Recorded | undefined,
): Draft | undefined {
  if (!images.some(isUnknown)) return undefined;
  const before = recordedBound(input, os, images, bound, recorded);
  if (before !== undefined) {
    const text = `the same images were placed on ${before.join(', ')} before`;
    return draft('placed', before, 'unknown-image-recorded', text);
  }
  const { policy } = input;
  const why = listed(images.filter(isUnknown), describeDetail, maxMessageBytes);
  // The pods of the template are decided when they are created. The image may be pushed until then.
  if (input.template === 'workload') return draft('allowed-unknown', bound, 'unknown-image-allow', why);
  if (policy.onUnknownImage === 'deny') {
    const message = `images could not be inspected: ${describeUnknown(images)}`;
    return draft('denied', bound, 'unknown-image-deny', `images could not be inspected: ${why}`, { message });
  }
  const warnings = failures(images);
  const isPod = input.template === undefined;
  const gates = isPod && policy.onUnknownImage === 'gate';
  if (isPod && (policy.onUnknownImage === 'fallback' || (gates && !mayBeKnown(images)))) {
    return draft('fallback', fallbackWithin(policy, bound, terms), 'unknown-image-fallback', why, {
      warnings,
    });
  }
  return gates
    ? draft('gated', bound, 'unknown-image-gate', why, { gate: true, warnings })
    : draft('allowed-unknown', bound, 'unknown-image-allow', why, { warnings });
}

/** `not-an-image` is final: the content of a digest never changes. So is a refusal by the configuration. */
function mayBeKnown(images: readonly ImageVerdict[]): boolean {
  return images.some(
    (image) => isUnknown(image) && image.unknown !== 'not-an-image' && image.facts?.source !== 'override',
  );
}

function fallbackWithin(
  policy: Policy,
  bound: readonly string[] | undefined,
  terms: Terms | undefined,
): readonly string[] | undefined {
  const fallback = policy.fallbackArchitecture;
  if (fallback === undefined || !permittedBy(terms, fallback)) return bound;
  const { schedulableArchitectures } = policy;
  if (schedulableArchitectures.length > 0 && !schedulableArchitectures.includes(fallback)) return bound;
  return bound === undefined || bound.includes(fallback) ? [fallback] : bound;
}

/** Warnings for failed inspections. An image that is not inspected yet needs none. */
function failures(images: readonly ImageVerdict[]): readonly string[] {
  return images
    .filter((image) => isUnknown(image) && image.facts?.error !== undefined)
    .map((image) => `archwright: image ${describe(image)}`);
}

/** What a record of the same images required, for a DaemonSet with unknown ones. */
function recordedBound(
  input: PlacementInput,
  os: string,
  images: readonly ImageVerdict[],
  bound: readonly string[] | undefined,
  recorded: Recorded | undefined,
): readonly string[] | undefined {
  if (input.template !== 'DaemonSet') return undefined;
  if (!recorded?.architectures?.length || recorded.imagesKey !== imagesKeyOf(os, images)) return undefined;
  const { architectures } = recorded;
  const both = bound === undefined ? architectures : intersection(architectures, bound);
  return both.length === 0 ? undefined : both;
}
