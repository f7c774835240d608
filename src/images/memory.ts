/** Contract of the facts memory; `createFactsMemory` makes one. */
import type { Attempt } from '../registry/question.ts';
import type { ImageFacts, ImageQuestion } from './facts.ts';

export interface FactsMemory {
  /**
   * What can be answered at once: facts that are fresh for the question's pull policy, an override, or a remembered
   * failure (facts with `error`). `undefined`: somebody must be asked. Starts a revalidation behind the answer where one
   * is due. Never waits.
   */
  recall(question: ImageQuestion): ImageFacts | undefined;
  /** The last good facts however old, marked stale; for when there is no time to ask. */
  lastKnown(question: ImageQuestion): ImageFacts | undefined;
  /**
   * Answers from memory or asks the inspector; concurrent askers share one request. The request has a time limit of its own
   * and goes on when this asker's `signal` aborts (the promise then rejects with the signal's reason), so that the next one finds
   * its answer.
   */
  ask(
    question: ImageQuestion,
    options: { readonly signal: AbortSignal; readonly trace?: (attempt: Attempt) => void },
  ): Promise<ImageFacts>;
  /** Takes facts that somebody else learned anonymously or with a node's credentials. Older ones never replace newer ones. */
  learn(facts: ImageFacts): void;
  /** Everything that may be told to anyone: never what a pod's pull secret learned. */
  shared(): Iterable<ImageFacts>;
  readonly bytes: number;
  readonly size: number;
  /** Ends requests in flight and timers; writes what is to be kept. */
  close(): Promise<void>;
}
