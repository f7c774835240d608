/** Whether each image of a pod can run on the required architectures, in words for people and programs. */
import { maxRetryAfterMs } from '../../src/http/client.ts';
import type { FactsError, FactsErrorCode, ImageFacts } from '../../src/images/facts/facts.ts';
import { errorText } from '../../src/placement/rules/images/unknown.ts';
import { validReference } from '../../src/images/references/reference.ts';
import { timeText } from '../../src/kube/events/events.ts';
import { maxImageBytes, printable } from '../../src/names/printable.ts';
import { noNodes } from '../../src/nodes/node-classes.ts';
import type { ImageVerdict } from '../../src/placement/decision.ts';
import { describeImages } from '../../src/placement/rules/constraint/no-common.ts';
import { verdictsOf } from '../../src/placement/rules/images/fit.ts';
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
export type Verdict = keyof typeof classes;

export interface Result extends ImagePlace, Owner {
  readonly architecture: string;
  readonly verdict: Verdict;
  /** One line; empty if there is nothing to say. */
  readonly why: string;
}

const words: Readonly<Record<FactsErrorCode, Verdict>> = {
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

interface Judged {
  readonly verdict: Verdict;
  readonly why: string;
}

/** @param now wall clock, milliseconds @returns one result for each image, place and architecture */
export function judge(
  { owner, os, chosen, uses, places }: CheckedPod,
  architectures: readonly string[],
  factsOf: (image: string) => ImageFacts | undefined,
  allowList: AllowList,
  now: number,
): readonly Result[] {
  // Every class of node is possible in a cluster without nodes, and an image runs on what it names.
  const verdicts = new Map(verdictsOf(uses, os, factsOf, noNodes).map((each) => [each.image, each]));
  const neverPulled = new Set(
    uses.filter(({ pullPolicy }) => pullPolicy === 'Never').map(({ image }) => image),
  );
  return places.flatMap((place) =>
    architectures.map((architecture) => {
      const found = verdicts.get(place.image);
      const byImage = neverPulled.has(place.image)
        ? ({ verdict: 'never-pulled', why: 'it is never pulled, so its architectures are unknown' } as const)
        : judgeImage(found, os, architecture, now);
      const judged = allowed(pinned(byImage, chosen, architecture), place.image, architecture, allowList);
      return {
        ...owner,
        ...place,
        architecture,
        verdict: judged.verdict,
        why: printable(judged.why, maxWhyBytes),
      };
    }),
  );
}

function judgeImage(found: ImageVerdict | undefined, os: string, architecture: string, now: number): Judged {
  const facts = found?.facts;
  if (found === undefined || facts === undefined) return { verdict: 'unreachable', why: 'no answer in time' };
  const { error, stale, requiredLevel } = facts;
  if (error && (found.unknown !== undefined || error.code === 'invalid-reference')) {
    const again = error.code === 'rate-limited' ? `; ${whenAgain(error, now)}` : '';
    return { verdict: words[error.code], why: `${errorText(error)}${again}` };
  }
  const notes = stale ? ['from the cache, because the registry does not answer'] : [];
  if (found.architectures !== undefined && !found.architectures.includes(architecture)) {
    const text = describeImages([found], os).slice(printable(found.image, maxImageBytes).length + 1);
    return { verdict: 'missing', why: [text, ...notes].join('; ') };
  }
  const depends = found.fit?.dependsOn.get(architecture);
  if (depends !== undefined) notes.unshift(`not on every ${architecture} node: it depends on ${depends}`);
  if (architecture === 'amd64' && requiredLevel !== undefined)
    notes.unshift(`needs x86-64-v${requiredLevel}`);
  return { verdict: 'ok', why: notes.join('; ') };
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

function pinned(judged: Judged, chosen: readonly string[] | undefined, architecture: string): Judged {
  if (judged.verdict !== 'ok' || chosen === undefined || chosen.includes(architecture)) return judged;
  const which = chosen.length === 0 ? 'an architecture that does not exist' : chosen.join(', ');
  return { verdict: 'pinned', why: `the pod requires ${which}` };
}

function allowed(judged: Judged, image: string, architecture: string, allowList: AllowList): Judged {
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
