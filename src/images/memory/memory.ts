/**
 * The facts memory: what makes an admission answer without asking anybody.
 *
 * An image question is looked up in this order: overrides; facts that were learned anonymously or with a node's credentials
 * (shared: they serve every pod); facts that were learned with the pull credentials this pod presents; facts that a node
 * learned with credentials of the pod's service account; a failure remembered for exactly these. Facts grow old (`freshness.ts`): due ones answer and are confirmed behind the answer, expired
 * ones answer only while asking fails, marked stale (`answers.ts`, `inspections.ts`). What memory may hold is bounded (`store.ts`).
 *
 * Times inside the process are monotonic; only `freshUntil` is a date.
 */
import type { Attempt } from '../../registry/lookup.ts';
import { systemClock, type Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { createAnswers } from './answers.ts';
import type { ImageFacts, ImageRequest, ImageFactsSource } from '../facts/facts.ts';
import { createFailures, type Failure } from './failures.ts';
import type { FactsFile } from './disk.ts';
import { unlessAborted } from '../../async/wait.ts';
import { defaultFreshness, type FreshnessSettings } from './freshness.ts';
import { createInspections } from './inspections.ts';
import { sharedScope } from './key.ts';
import { createFactsMetrics, type FactsMetrics } from './metrics.ts';
import { noOverrides, type Overrides } from '../sources/overrides.ts';
import { InvalidReference, parseReference, pullReference } from '../references/reference.ts';
import { createFactsStore } from './store.ts';
import { createViewer } from './view.ts';
import { ofNobody } from './scope.ts';

export interface FactsMemory {
  /**
   * What can be answered at once: facts that are fresh for the question's pull policy, an override, or a remembered
   * failure (facts with `error`). `undefined`: somebody must be asked. Starts a revalidation behind the answer where one
   * is due. Never waits.
   *
   * A failure holds for exactly the pull credentials of the question. Who looks before it has read the pod's Secrets must
   * not take a failure for final where the pod names some.
   */
  recall(question: ImageRequest): ImageFacts | undefined;
  /** The last good facts however old, marked stale; for when there is no time to ask. */
  lastKnown(question: ImageRequest): ImageFacts | undefined;
  /**
   * Answers from memory or asks the inspector; concurrent askers share one request. The request has a time limit of its own
   * and goes on when this asker's `signal` aborts (the promise then rejects with the signal's reason), so that the next one finds
   * its answer. `trace` hears of the requests that this asker caused; who joins another's hears nothing.
   */
  lookup(
    question: ImageRequest,
    options: { readonly signal: AbortSignal; readonly trace?: (attempt: Attempt) => void },
  ): Promise<ImageFacts>;
  /** Takes facts that somebody else learned anonymously or with a node's credentials. Older ones never replace newer ones. */
  learn(facts: ImageFacts): void;
  /** Everything that may be told to anyone, most recently used first: never what a pod's own credentials learned. */
  shared(): Iterable<ImageFacts>;
  readonly bytes: number;
  readonly size: number;
  /** Ends requests in flight and timers; writes what is to be kept. */
  close(): Promise<void>;
}

export interface FactsMemoryOptions {
  readonly source: ImageFactsSource;
  readonly log: Log;
  readonly freshness?: FreshnessSettings;
  readonly overrides?: Overrides;
  /** Bound of facts and failures together, by the estimates of `size.ts`. */
  readonly maxBytes?: number;
  /** Time limit of one question, whoever waits for it. */
  readonly lookupTimeoutMs?: number;
  /** Where shared facts survive a restart; see `restoreFacts`. */
  readonly file?: FactsFile;
  readonly metrics?: FactsMetrics;
  readonly clock?: Clock;
}

const mebibyte = 1_048_576;
const defaultMaxBytes = 64 * mebibyte;
const defaultInspectTimeoutMs = 15_000;

/** Failures have room of their own, so that names of images that do not exist cannot push out facts. */
const failuresShare = 1 / 8;

/** Makes an empty memory. Close it in the end. */
export function createFactsMemory(options: FactsMemoryOptions): FactsMemory {
  const { source, log, file, freshness = defaultFreshness, clock = systemClock } = options;
  const { overrides = noOverrides } = options;
  const metrics = options.metrics ?? createFactsMetrics(createMetrics());
  const maxBytes = options.maxBytes ?? defaultMaxBytes;
  const store = createFactsStore(maxBytes * (1 - failuresShare), () => {
    metrics.evicted.inc();
  });
  const failures = createFailures(maxBytes * failuresShare, clock.random);
  const viewer = createViewer(clock, freshness);
  const inspections = createInspections({
    inspector: source,
    store,
    failures,
    viewer,
    freshness,
    inspectTimeoutMs: options.lookupTimeoutMs ?? defaultInspectTimeoutMs,
    clock,
    log,
    metrics,
    onChange: () => file?.changed(),
  });
  const answers = createAnswers({ store, failures, viewer, freshness, overrides, inspections, clock });

  /**
   * Images with shared facts are asked for without anything of the pod first: one request then serves all pods, whatever
   * secrets they bring. Only where that is refused is the pod's own presented.
   */
  async function inspect(
    question: ImageRequest,
    trace: ((attempt: Attempt) => void) | undefined,
  ): Promise<ImageFacts> {
    const key = pullReference(question.reference).text;
    const shared = store.find(key, question.reference, sharedScope);
    if (shared && bringsSomething(question) && !answers.refusalToAll(key)) {
      const facts = await inspections.ask(ofNobody(question), key, shared, trace);
      const refusal = answers.refusalToAll(key);
      if (!refusal || !mayDoBetter(question, refusal)) return facts;
    }
    return inspections.ask(question, key, answers.newest(question, key), trace);
  }

  const memory: FactsMemory = {
    recall: (question) => answers.recall(question, metrics.recall),
    lastKnown: (question) => {
      const override = overrides.find(question.image, question.reference);
      if (override) return override;
      const entry = answers.newest(question, pullReference(question.reference).text);
      return entry && viewer.facts(entry, question.image, question.reference.digest !== undefined, true);
    },
    lookup: async (question, { signal, trace }) => {
      signal.throwIfAborted();
      const remembered = answers.recall(question, uncounted);
      if (remembered) return remembered;
      const facts = await unlessAborted(inspect(question, trace), signal);
      return facts.image === question.image ? facts : { ...facts, image: question.image };
    },
    learn: (facts) => {
      const key = keyOf(facts.image);
      if (key !== undefined) inspections.keep(key, facts);
    },
    *shared() {
      for (const entry of store.shared()) {
        yield viewer.facts(entry, entry.key, entry.key.includes('@'), false);
      }
    },
    get bytes() {
      return store.bytes + failures.bytes;
    },
    get size() {
      return store.size;
    },
    close: async () => {
      await inspections.close();
      await file?.close();
    },
  };
  metrics.watch(memory, inspections);
  file?.keep(() => memory.shared());
  return memory;
}

function bringsSomething({ pullCredentials, serviceAccount }: ImageRequest): boolean {
  return pullCredentials.length > 0 || serviceAccount !== undefined;
}

function mayDoBetter({ pullCredentials, serviceAccount }: ImageRequest, { perAccount }: Failure): boolean {
  return pullCredentials.length > 0 || (perAccount && serviceAccount !== undefined);
}

/** Who asks has looked before; that look is the one that counts. */
function uncounted(): void {}

/** The key of an image's text; `undefined` for one that does not parse, which nobody can ask for either. */
function keyOf(image: string): string | undefined {
  try {
    return pullReference(parseReference(image)).text;
  } catch (error) {
    if (error instanceof InvalidReference) return undefined;
    throw error;
  }
}
