/** Whether each image of a pod can run on the required architectures, in words for people and programs. */
import { maxRetryAfterMs } from '../../src/http/client.ts';
import type { FactsError, FactsErrorCode, ImageFacts } from '../../src/images/facts/facts.ts';
import { errorText } from '../../src/placement/rules/images/unknown.ts';
import { validReference } from '../../src/images/references/reference.ts';
import { timeText } from '../../src/kube/events/events.ts';
import { printable } from '../../src/names/printable.ts';
import { exclusionOf, type Exclusion } from '../report/exclusion.ts';
import { judgeImages, type JudgedImage } from '../report/verdict.ts';
import type { AllowList } from './allow-list.ts';
import type { CheckedPod, ImagePlace, Owner } from './pods.ts';

/** `fine`: exit code 0. `finding`: 1. `unknown`: 3, the registry gave no answer. */
export const classes = {
  ok: 'fine',
  allowed: 'fine',
  missing: 'finding',
  pinned: 'finding',
  'not-found': 'finding',
  'not-an-image': 'finding',
  invalid: 'finding',
  unauthorized: 'unknown',
  'rate-limited': 'unknown',
  unreachable: 'unknown',
  unusable: 'unknown',
  'never-pulled': 'unknown',
} as const;
export type CheckVerdict = keyof typeof classes;

export interface Result extends ImagePlace, Owner {
  readonly architecture: string;
  readonly verdict: CheckVerdict;
  /** One line; empty if there is nothing to say. */
  readonly why: string;
}

const words: Readonly<Record<FactsErrorCode, CheckVerdict>> = {
  'invalid-reference': 'invalid',
  'not-found': 'not-found',
  'not-an-image': 'not-an-image',
  unauthorized: 'unauthorized',
  forbidden: 'unauthorized',
  'rate-limited': 'rate-limited',
  unavailable: 'unreachable',
  timeout: 'unreachable',
  'unsupported-media-type': 'unusable',
  'too-large': 'unusable',
  'digest-mismatch': 'unusable',
};

const maxWhyBytes = 600;

type CheckOutcome = Pick<Result, 'verdict' | 'why'>;

/** @param now wall clock, milliseconds @returns one result for each image, place and architecture */
export function checkPod(
  { owner, os, choice, uses, places }: CheckedPod,
  architectures: readonly string[],
  factsOf: (image: string) => ImageFacts | undefined,
  allowList: AllowList,
  now: number,
): readonly Result[] {
  const policies = new Map(uses.map(({ image, pullPolicy }) => [image, pullPolicy]));
  const all = architectures.map((architecture) => {
    const images = judgeImages({ os, wanted: { uses } }, architecture, factsOf);
    const byName = new Map(images.map((each) => [each.image, each]));
    return { architecture, byName, exclusion: exclusionOf(choice, architecture) };
  });
  return places.flatMap((place) => {
    const isNever = policies.get(place.image) === 'Never';
    const error = isNever ? 'never-pulled' : factsOf(place.image)?.error;
    return all.flatMap(({ architecture, byName, exclusion }) => {
      const image = byName.get(place.image);
      if (image === undefined) return [];
      const byImage = verdictOn(image, error, now);
      const judged = allowed(pinned(byImage, exclusion), place.image, architecture, allowList);
      return { ...owner, ...place, architecture, ...judged, why: printable(judged.why, maxWhyBytes) };
    });
  });
}

function verdictOn(
  { state, why }: JudgedImage,
  error: FactsError | 'never-pulled' | undefined,
  now: number,
): CheckOutcome {
  if (state !== 'unknown') return { verdict: state === 'ready' ? 'ok' : 'missing', why };
  if (typeof error !== 'object') return { verdict: error ?? 'unreachable', why };
  const again = error.code === 'rate-limited' ? `; ${whenAgain(error, now)}` : '';
  return { verdict: words[error.code], why: `${errorText(error)}${again}` };
}

/** A shorter time is a back-off of the cache: the registry named none. */
const leastNamedMs = 60_000;

function whenAgain({ message, retryAfterMs = 0 }: FactsError, now: number): string {
  if (retryAfterMs <= leastNamedMs) {
    const window = /\bdocker\.io\b/.test(message) ? '; Docker Hub counts the requests of 6 hours' : '';
    return `try again later${window}`;
  }
  const at = timeText(now + retryAfterMs);
  const atLeast = retryAfterMs >= maxRetryAfterMs ? 'at least ' : '';
  return `try again after ${at} (in ${atLeast}${Math.ceil(retryAfterMs / 60_000)} min)`;
}

function pinned(judged: CheckOutcome, exclusion: Exclusion | undefined): CheckOutcome {
  return judged.verdict === 'ok' && exclusion ? { verdict: 'pinned', why: exclusion.why } : judged;
}

function allowed(
  judged: CheckOutcome,
  image: string,
  architecture: string,
  allowList: AllowList,
): CheckOutcome {
  const reference = validReference(image);
  const entry = reference && allowList.find(reference, architecture, judged.verdict !== 'ok');
  if (!entry) return judged;
  const { reason, expires, image: pattern } = entry;
  const until = expires === undefined ? '' : ` until ${expires}`;
  return {
    verdict: 'allowed',
    why: `allowed by ${pattern}${until}${reason ? `: ${reason}` : ''}; ${judged.why}`,
  };
}
