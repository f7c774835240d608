/**
 * Asking the inspector, and what becomes of its answer. One question at a time is under way for an image and a scope; its
 * answer is kept (or its failure remembered) once, whoever waits for it. Only the answer tells whether it depended on the
 * service account of who asked first: then pods of other service accounts ask for themselves.
 *
 * What ends old facts is a registry that says the image is not there. Every other failure leaves them, and they answer,
 * marked stale: pods whose image is on their node start even while its registry refuses or is away.
 */
import type { ServiceAccountName } from '../../credentials/service-account.ts';
import type { Attempt } from '../../registry/lookup.ts';
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Entry } from './entry.ts';
import type { Failures } from './failures.ts';
import type { FactsErrorCode, ImageFacts, ImageRequest, ImageFactsSource } from '../facts/facts.ts';
import { RunTimeout, SingleFlight } from '../../async/single-flight.ts';
import { unlessAborted } from '../../async/wait.ts';
import { confirmedAt, type FreshnessSettings } from './freshness.ts';
import { scopedKey, scopeOf, sharedScope, withAccount, type Scope } from './key.ts';
import type { FactsMetrics } from './metrics.ts';
import type { FactsStore } from './store.ts';
import type { Viewer } from './view.ts';
import { asFor, isPerAccount, isSameAccount, scopeOfFailure, scopeToKeep } from './scope.ts';

/** More questions than this at once are refused; each holds some kilobytes and most would run into their time limit. */
const maxFlights = 4096;

/** Revalidations give way to questions that somebody waits for; one that finds no room is started by a later answer. */
const maxRevalidations = 64;

/** An agent may answer a revalidation from its own memory with facts as old as ours; asking again at once would not help. */
const revalidationPauseMs = 1000;

export interface Inspections {
  /**
   * Asks, or joins who asks already.
   * @param key of the image, without scope
   * @param known old facts to compare with, and to answer with where asking fails
   */
  ask(
    question: ImageRequest,
    key: string,
    known: Entry | undefined,
    trace?: (attempt: Attempt) => void,
  ): Promise<ImageFacts>;
  /** Confirms facts behind an answer; does nothing where that is under way, or was tried a moment ago. */
  revalidate(question: ImageRequest, key: string, entry: Entry): void;
  /**
   * Keeps facts that are newer than what is there.
   * @param question that they answer; without it only what may be shared is kept
   */
  keep(key: string, facts: ImageFacts, question?: ImageRequest): void;
  close(): Promise<void>;
  /** Whether some answer ever depended on a service account; in most clusters none does. */
  readonly perAccount: boolean;
  /** Questions under way. */
  readonly size: number;
}

export interface InspectionsParts {
  readonly inspector: ImageFactsSource;
  readonly store: FactsStore;
  readonly failures: Failures;
  readonly viewer: Viewer;
  readonly freshness: FreshnessSettings;
  readonly inspectTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: FactsMetrics;
  /** Told when shared facts were added, changed or taken away. */
  readonly onChange: () => void;
}

interface Flown {
  readonly facts: ImageFacts;
  /** Whose answer it was. */
  readonly account: ServiceAccountName | undefined;
  readonly perAccount: boolean;
}

export function createInspections(parts: InspectionsParts): Inspections {
  const { inspector, store, failures, viewer, freshness, clock, log, metrics } = parts;
  const flights = new SingleFlight<Flown>({
    limit: { ms: parts.inspectTimeoutMs, clock },
  });
  let closed = false;
  let perAccountSeen = false;

  function fly(
    question: ImageRequest,
    key: string,
    flightKey: string,
    known: Entry | undefined,
    trace: ((attempt: Attempt) => void) | undefined,
  ): Promise<Flown> {
    return flights.run(flightKey, async (signal) => {
      const answer = await inspect(question, known, trace, signal);
      const facts = closed ? answer : settle(question, key, known, answer);
      const perAccount = isPerAccount(answer) || isPerAccount(facts);
      return { facts, account: question.serviceAccount, perAccount };
    });
  }

  async function inspect(
    question: ImageRequest,
    known: Entry | undefined,
    trace: ((attempt: Attempt) => void) | undefined,
    signal: AbortSignal,
  ): Promise<ImageFacts> {
    const byDigest = question.reference.digest !== undefined;
    try {
      return await unlessAborted(
        inspector.lookup(question, {
          signal,
          ...(known && { known: viewer.facts(known, question.image, byDigest, false) }),
          ...(trace && { trace }),
        }),
        signal,
      );
    } catch (error) {
      if (error instanceof RunTimeout) return failed(question, 'timeout', error.message);
      if (closed) return failed(question, 'unavailable', 'the program is ending');
      // An inspector answers with an error and does not throw one: this is a fault of ours.
      log.error({ err: error, image: question.image }, 'inspecting an image failed unexpectedly');
      return failed(question, 'unavailable', 'inspecting the image failed unexpectedly; the log says why');
    }
  }

  function settle(
    question: ImageRequest,
    key: string,
    known: Entry | undefined,
    facts: ImageFacts,
  ): ImageFacts {
    const isSlow = facts.error?.code === 'timeout' && question.serviceAccount !== undefined;
    // Where answers depend on service accounts at all, one whose credentials are slow must not hold up the others.
    const perAccount = isPerAccount(facts) || (perAccountSeen && isSlow);
    if (perAccount) perAccountSeen = true;
    const scope = scopeOfFailure(question, perAccount);
    const failureKey = scopedKey(key, scope);
    if (isKnowledge(facts)) {
      if (facts.stale) failures.note(failureKey, staleAnswer, clock.monotonic(), perAccount);
      else failures.forget(failureKey);
      keep(key, facts, question);
      return facts;
    }
    const error = facts.error ?? { code: 'not-an-image', message: 'the answer names no digest' };
    metrics.failure(error.code);
    failures.note(failureKey, error, clock.monotonic(), perAccount);
    if (known === undefined) return facts;
    if (error.code !== 'not-found')
      return viewer.facts(known, question.image, question.reference.digest !== undefined, true);
    if (known.scope === scope) {
      store.remove(known);
      if (scope === sharedScope) parts.onChange();
    }
    return facts;
  }

  function keep(key: string, facts: ImageFacts, question?: ImageRequest): void {
    if (!isKnowledge(facts) || facts.source === 'override') return;
    const keptScope = scopeToKeep(facts, question);
    // Nobody knows whose credential that was, so nobody may see it.
    if (keptScope === undefined) return;
    const byDigest = key.includes('@');
    if (byDigest && !key.endsWith(`@${facts.digest}`)) {
      log.warn(
        { image: facts.image, digest: facts.digest },
        'facts of another digest than asked for left out',
      );
      return;
    }
    const confirmed = whenConfirmed(facts, byDigest);
    const present = store.get(key, keptScope);
    if (present && confirmed <= present.confirmedAt) return;
    store.put(key, keptScope, facts, confirmed);
    if (keptScope === sharedScope) parts.onChange();
  }

  /** In monotonic time. Facts that come straight from a registry were confirmed now, whatever the clock of who asked it says. */
  function whenConfirmed(facts: ImageFacts, byDigest: boolean): number {
    if (facts.source === 'registry') return clock.monotonic();
    const now = clock.now();
    const confirmed = confirmedAt(Date.parse(facts.freshUntil), now, byDigest, freshness);
    return clock.monotonic() - (now - confirmed);
  }

  return {
    ask: async (question, key, known, trace) => {
      const scope = scopeOf(question.pullCredentials);
      const apart = withAccount(scope, question.serviceAccount);
      const isApart = perAccountSeen && flights.has(scopedKey(key, apart));
      const flown = await ask(question, key, isApart ? apart : scope, known, trace);
      if (!flown.perAccount || isSameAccount(flown.account, question.serviceAccount)) return flown.facts;
      return (await ask(question, key, apart, known, trace)).facts;
    },
    revalidate: (question, key, entry) => {
      const now = clock.monotonic();
      if (closed || now < entry.pausedUntil) return;
      if (flights.size >= maxRevalidations || flights.has(scopedKey(key, entry.scope))) return;
      entry.pausedUntil = now + revalidationPauseMs;
      metrics.revalidated.inc();
      fly(asFor(entry.scope, question), key, scopedKey(key, entry.scope), entry, undefined).catch(
        (error: unknown) =>
          log.error({ err: error, image: question.image }, 'a revalidation failed unexpectedly'),
      );
    },
    keep,
    close: () => {
      closed = true;
      return flights.close(new Error('the program is ending'));
    },
    get perAccount() {
      return perAccountSeen;
    },
    get size() {
      return flights.size;
    },
  };

  async function ask(
    question: ImageRequest,
    key: string,
    scope: Scope,
    known: Entry | undefined,
    trace: ((attempt: Attempt) => void) | undefined,
  ): Promise<Flown> {
    const flightKey = scopedKey(key, scope);
    const { serviceAccount: account } = question;
    const isUnderWay = flights.has(flightKey);
    if (flights.size >= maxFlights && !isUnderWay) {
      const facts = failed(question, 'unavailable', 'too many images are being inspected at once');
      return { facts, account, perAccount: false };
    }
    (isUnderWay ? metrics.joined : metrics.asked).inc();
    return fly(question, key, flightKey, known, trace);
  }

  function failed(question: ImageRequest, code: FactsErrorCode, message: string): ImageFacts {
    return {
      image: question.image,
      platforms: [],
      source: 'registry',
      credentialSource: 'anonymous',
      endpoint: '',
      freshUntil: new Date(clock.now()).toISOString(),
      stale: false,
      error: { code, message },
    };
  }
}

const staleAnswer = { code: 'unavailable', message: 'the registry fails; older facts were given' } as const;

/** Facts to be kept: an image's, or that a digest is no image. Both hold as long as the digest does. */
function isKnowledge(facts: ImageFacts): facts is ImageFacts & { readonly digest: string } {
  return facts.digest !== undefined && (facts.error === undefined || facts.error.code === 'not-an-image');
}
