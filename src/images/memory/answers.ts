/**
 * Answering from memory: overrides, shared facts, the facts of the presented pull credentials, those of the service account,
 * remembered failures, in this order.
 * Nothing here waits; what is due is handed to the inspections.
 */
import type { Clock } from '../../async/clock.ts';
import type { Entry } from './entry.ts';
import type { ImageFacts, ImageRequest } from '../facts/facts.ts';
import { isAnswer, type Failure, type Failures } from './failures.ts';
import { freshnessOf, type FreshnessSettings } from './freshness.ts';
import { createGenerations } from './generations.ts';
import type { Inspections } from './inspections.ts';
import { scopedKey, scopeOf, sharedScope, withAccount } from './key.ts';
import type { RecallResult } from './metrics.ts';
import type { Overrides } from '../sources/overrides.ts';
import { maxCachedLength } from '../references/reference-cache.ts';
import { pullReference } from '../references/reference.ts';
import type { FactsStore } from './store.ts';
import type { Viewer } from './view.ts';

/** Answers kept ready by the text of the image: as many images as a large cluster uses at a time. */
const readyAnswers = 4096;
/** A ready answer holds a date; it is made anew at times, in case the wall clock was set. */
const readyForMs = 60_000;

export interface Answers {
  /**
   * What memory answers; `undefined` where somebody must be asked.
   * @param count told what kind of answer it is
   */
  recall(question: ImageRequest, count: (result: RecallResult) => void): ImageFacts | undefined;
  /** The newest facts that this question may see, however old. */
  newest(question: ImageRequest, key: string): Entry | undefined;
  /** How a registry has just refused this image to those who bring no credentials of their own, if it did. */
  refusalToAll(key: string): Failure | undefined;
}

export interface AnswersParts {
  readonly store: FactsStore;
  readonly failures: Failures;
  readonly viewer: Viewer;
  readonly freshness: FreshnessSettings;
  readonly overrides: Overrides;
  readonly inspections: Inspections;
  readonly clock: Clock;
}

interface Ready {
  readonly entry: Entry;
  readonly facts: ImageFacts;
  readonly byDigest: boolean;
  readonly madeAt: number;
  /** Version of the overrides then. */
  readonly overrides: unknown;
}

export function createAnswers(parts: AnswersParts): Answers {
  const { store, failures, viewer, freshness, overrides, inspections, clock } = parts;
  const ready = createGenerations<Ready>(readyAnswers);

  /** The warm path: one look by the text of the image, nothing parsed, nothing allocated. */
  function recallReady({ image, pullPolicy }: ImageRequest): ImageFacts | undefined {
    const answer = ready.get(image);
    if (!answer?.entry.listed || answer.overrides !== overrides.version) return undefined;
    const now = clock.monotonic();
    if (now - answer.madeAt >= readyForMs) return undefined;
    const age = now - answer.entry.confirmedAt;
    if (freshnessOf(age, answer.byDigest, pullPolicy, freshness) !== 'fresh') return undefined;
    store.touch(answer.entry);
    return answer.facts;
  }

  /** Facts that this question may see, in the order in which they are looked at. */
  function* visible(question: ImageRequest, key: string): Generator<Entry> {
    const { reference, pullCredentials, serviceAccount } = question;
    const scopes = new Set([sharedScope, scopeOf(pullCredentials), ...pullCredentials.map(({ id }) => id)]);
    if (serviceAccount && inspections.perAccount) scopes.add(withAccount(sharedScope, serviceAccount));
    for (const scope of scopes) {
      const entry = store.find(key, reference, scope);
      if (entry) yield entry;
    }
  }

  function serve(
    entry: Entry,
    question: ImageRequest,
    key: string,
    count: (result: RecallResult) => void,
  ): ImageFacts | undefined {
    const now = clock.monotonic();
    const { image, pullPolicy } = question;
    const byDigest = question.reference.digest !== undefined;
    const state = freshnessOf(now - entry.confirmedAt, byDigest, pullPolicy, freshness);
    if (state === 'fresh') {
      const facts = viewer.facts(entry, image, byDigest, false);
      if (entry.scope === sharedScope && image.length <= maxCachedLength) {
        ready.set(image, { entry, facts, byDigest, madeAt: now, overrides: overrides.version });
      }
      store.touch(entry);
      count('fresh');
      return facts;
    }
    const failure = failures.holding(scopedKey(key, entry.scope), now);
    if (failure) {
      // Whoever brings credentials of its own may learn what is refused to all; the others get these facts in the end.
      if (entry.scope === sharedScope && isAnswer(failure.error.code)) return undefined;
    } else {
      if (state === 'expired') return undefined;
      inspections.revalidate(question, key, entry);
    }
    store.touch(entry);
    count(failure ? 'stale' : 'due');
    return viewer.facts(entry, image, byDigest, failure !== undefined);
  }

  function recall(question: ImageRequest, count: (result: RecallResult) => void): ImageFacts | undefined {
    const answer = recallReady(question);
    if (answer) {
      count('fresh');
      return answer;
    }
    const override = overrides.find(question.image, question.reference);
    if (override) {
      count('override');
      return override;
    }
    const key = pullReference(question.reference).text;
    for (const entry of visible(question, key)) {
      const facts = serve(entry, question, key, count);
      if (facts) return facts;
    }
    return recallFailure(question, key, count);
  }

  function recallFailure(
    question: ImageRequest,
    key: string,
    count: (result: RecallResult) => void,
  ): ImageFacts | undefined {
    const failure = heldFailure(question, key);
    if (!failure) {
      count('miss');
      return undefined;
    }
    const old = failure.error.code === 'not-found' ? undefined : newest(question, key);
    count(old ? 'stale' : 'failure');
    return old
      ? viewer.facts(old, question.image, question.reference.digest !== undefined, true)
      : viewer.failure(failure, question.image);
  }

  function heldFailure({ pullCredentials, serviceAccount }: ImageRequest, key: string): Failure | undefined {
    const now = clock.monotonic();
    const scope = scopeOf(pullCredentials);
    const failure = failures.holding(scopedKey(key, scope), now);
    if (!serviceAccount || !inspections.perAccount) return failure;
    const own = failures.holding(scopedKey(key, withAccount(scope, serviceAccount)), now);
    return own ?? (failure?.perAccount === true ? undefined : failure);
  }

  function newest(question: ImageRequest, key: string): Entry | undefined {
    let best: Entry | undefined;
    for (const entry of visible(question, key)) {
      if (!best || entry.confirmedAt > best.confirmedAt) best = entry;
    }
    return best;
  }

  return {
    recall,
    newest,
    refusalToAll: (key) => {
      const failure = failures.holding(key, clock.monotonic());
      return failure && isAnswer(failure.error.code) ? failure : undefined;
    },
  };
}
