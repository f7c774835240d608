/**
 * Requests for image facts. Images that are looked up in one turn of the event loop for the same namespace and
 * credentials go to an agent in one request, so nearly every pod costs an agent one request. Facts are passed
 * on as the agent finds them: a slow registry delays only its own images.
 *
 * An agent gets a limited number of requests at a time, and no namespace can use them up
 * (`fair-semaphore.ts`). Images join a request that waits for its turn.
 */
import type { Clock } from '../async/clock.ts';
import { FairSemaphores } from '../async/fair-semaphore.ts';
import { timeLimit } from '../async/wait.ts';
import { toAuths } from '../credentials/auths.ts';
import { scopeOf } from '../images/cache/scope.ts';
import type { ImageFacts, ImageRequest } from '../images/facts/facts.ts';
import { AgentError, maxLineBytes, type AgentConnection } from './connection.ts';
import { factsOfLine } from './info.ts';

/** Fewer than the connections to one agent (32), so that `/v1/info` and probes need not wait. */
const requestsPerAgent = { places: 28 };
/** An answer has at most 16 MiB. Only one line of it is in memory at a time. */
const maxImages = 256;
/** An agent begins its answer at once, whatever its registries do. */
const maxSilenceMs = 3000;
/** The agent answers this much before time is up, so that its answer still arrives. */
const answerMarginMs = 100;
const leastDeadlineMs = 10;

interface Item {
  readonly request: ImageRequest;
  /** Monotonic time at which the caller gives up. */
  readonly deadline: number;
  readonly resolve: (facts: ImageFacts) => void;
  readonly reject: (error: unknown) => void;
}

/** Images without an answer, each once. */
type Batch = Map<string, Item>;

export class Batches {
  readonly #connection: AgentConnection;
  readonly #clock: Clock;
  readonly #places = new FairSemaphores(requestsPerAgent);
  /** Requests that are not sent yet, by agent, namespace and credentials. */
  readonly #unsent = new Map<string, Batch>();

  constructor(connection: AgentConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /**
   * The pod's pull credentials go only with this request.
   * @param url the agent's
   * @param deadline monotonic time in milliseconds; the caller stops waiting by itself
   * @throws AgentError; `unreachable` also if the agent does not begin to answer
   */
  lookup(url: string, request: ImageRequest, deadline: number): Promise<ImageFacts> {
    const { image, namespace } = request;
    const { promise, resolve, reject } = Promise.withResolvers<ImageFacts>();
    const item = { request, deadline, resolve, reject };
    const key = JSON.stringify([url, namespace, scopeOf(request)]);
    const unsent = this.#unsent.get(key);
    if (unsent && unsent.size < maxImages && !unsent.has(image)) {
      unsent.set(image, item);
      return promise;
    }
    const batch = new Map([[image, item]]);
    this.#unsent.set(key, batch);
    // All images of a pod are looked up in one turn of the event loop.
    setImmediate(() => void this.#run(url, key, batch, namespace ?? ''));
    return promise;
  }

  async #run(url: string, key: string, batch: Batch, namespace: string): Promise<void> {
    const leave = await this.#places.enter(url, namespace, new AbortController().signal);
    if (this.#unsent.get(key) === batch) this.#unsent.delete(key);
    try {
      await this.#exchange(url, batch);
      throw new AgentError('bad-answer', url, 'the answer has no result for an image');
    } catch (error) {
      for (const { reject } of batch.values()) reject(error);
    } finally {
      leave();
    }
  }

  async #exchange(url: string, batch: Batch): Promise<void> {
    const now = this.#clock.monotonic();
    const items = [...batch.values()].filter(({ deadline }) => deadline > now);
    if (items.length === 0) return;
    const leftMs = Math.max(...items.map(({ deadline }) => deadline)) - now;
    const deadlineMs = Math.max(leastDeadlineMs, Math.floor(leftMs - answerMarginMs));
    const silenceMs = Math.min(maxSilenceMs, deadlineMs);
    using limit = timeLimit(leftMs, this.#clock.sleep);
    using silence = timeLimit(silenceMs, this.#clock.sleep);
    const lines = this.#connection.lines(url, '/v1/facts', {
      body: bodyOf(
        items.map(({ request }) => request),
        deadlineMs,
      ),
      signal: AbortSignal.any([limit.signal, silence.signal]),
      maxBytes: items.length * maxLineBytes,
      onResponse: () => silence[Symbol.dispose](),
    });
    try {
      for await (const line of lines) answer(batch, factsOfLine(line, url), url);
    } catch (error) {
      if (silence.signal.aborted)
        throw new AgentError('unreachable', url, `no response within ${silenceMs} ms`);
      throw error;
    }
  }
}

function bodyOf(requests: readonly ImageRequest[], deadlineMs: number): unknown {
  const credentials = requests.flatMap(({ pullCredentials }) => pullCredentials);
  return {
    // JSON has no Infinity: without a number, any age will do.
    images: requests.map(({ image, maxAgeMs }) =>
      maxAgeMs === Number.POSITIVE_INFINITY ? { image } : { image, maxAgeMs },
    ),
    namespace: requests[0]?.namespace,
    ...(credentials.length > 0 && { auths: toAuths(credentials) }),
    serviceAccount: requests[0]?.serviceAccount,
    deadlineMs,
  };
}

/** @throws AgentError for facts that belong to no image of the batch */
function answer(batch: Batch, facts: ImageFacts, url: string): void {
  const item = batch.get(facts.image);
  const { digest = facts.digest } = item?.request.reference ?? {};
  if (item === undefined || (facts.digest ?? digest) !== digest)
    throw new AgentError('bad-answer', url, 'a result is about another image');
  batch.delete(facts.image);
  item.resolve(facts);
}
