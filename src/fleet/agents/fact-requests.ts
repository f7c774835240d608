/**
 * Requests for image facts. Images that are looked up at the same time for the same namespace, service
 * account and pull credentials go to an agent in one request, so nearly every pod costs an agent one request.
 * Facts are passed on as the agent finds them: a slow registry delays only its own images.
 *
 * A request has only as many images as its answer has room for, even if each has the largest facts there are.
 *
 * An agent gets a limited number of requests at a time, and no namespace can use them up
 * (`fair-semaphore.ts`). Images join a request that waits for its turn.
 */
import type { Clock } from '../../async/clock.ts';
import { FairSemaphores } from '../../async/fair-semaphore.ts';
import { toAuths } from '../../credentials/auths.ts';
import type { ImageFacts, ImageRequest } from '../../images/facts/facts.ts';
import { maxDocumentsLength } from '../../images/facts/wire.ts';
import { scopeOf } from '../../images/memory/scope.ts';
import { AgentError, type AgentConnection } from './connection.ts';
import { factsOfAnswer } from './requests.ts';

/** How far a request is; a slow registry begins after `responding`. */
export type RequestState = 'waiting' | 'sent' | 'responding';

export interface FactsCall {
  readonly signal: AbortSignal;
  /** Monotonic time by which the agent answers, milliseconds. */
  readonly deadline: number;
  readonly onState: (state: RequestState) => void;
}

/** Fewer than the connections to one agent (32), so that `/v1/info` and probes need not wait. */
const requestsPerAgent = { places: 28 };
/** Facts have a few hundred bytes; with all the platforms that `readFacts` accepts, about 50 KiB. */
const maxFactsBytes = 64 * 1024;
/**
 * 256 images by tag or 9 by digest, far below the agent's limit of 1,000 images and 4 MiB. Only one line of
 * an answer is in memory at a time.
 */
const maxAnswerBytes = 16 * 1024 * 1024;
const leastDeadlineMs = 10;
/** An agent ends its answer after the last image. Waiting for that keeps the connection. */
const endMs = 1000;

interface Options {
  readonly connection: AgentConnection;
  readonly clock: Clock;
}

export class FactRequests {
  readonly #options: Options;
  readonly #places = new FairSemaphores(requestsPerAgent);
  /** Requests that are not sent yet, by agent, namespace, service account and pull credentials. */
  readonly #unsent = new Map<string, Batch>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** The pod's pull credentials go only with this request. @param url the agent's @throws AgentError */
  ask(url: string, request: ImageRequest, call: FactsCall): Promise<ImageFacts> {
    const { namespace, serviceAccount: account, pullCredentials, knownDigest } = request;
    const scope = scopeOf(pullCredentials);
    // The same image may be looked up for a pod and checked for drift; their answers differ.
    const key = JSON.stringify([url, namespace, account?.namespace, account?.name, scope, knownDigest]);
    const unsent = this.#unsent.get(key);
    if (unsent && unsent.maxBytes + maxBytesOf(request) <= maxAnswerBytes) return unsent.add(request, call);
    const batch = new Batch(url);
    this.#unsent.set(key, batch);
    // All images of a pod are looked up in one turn of the event loop.
    setImmediate(() => void this.#run(key, batch, namespace ?? ''));
    return batch.add(request, call);
  }

  async #run(key: string, batch: Batch, namespace: string): Promise<void> {
    const close = (): void => {
      if (this.#unsent.get(key) === batch) this.#unsent.delete(key);
    };
    try {
      const leave = await this.#places.enter(batch.url, namespace, batch.signal).finally(close);
      await this.#exchange(batch).finally(leave);
    } catch (error) {
      batch.fail(error);
    }
  }

  async #exchange(batch: Batch): Promise<void> {
    const { connection, clock } = this.#options;
    const { url, signal, maxBytes } = batch;
    batch.enter('sent');
    const lines = connection.lines(url, '/v1/facts', {
      body: batch.body(clock.monotonic()),
      signal,
      maxBytes,
      maxLineBytes: batch.maxLineBytes,
      onResponse: () => batch.enter('responding'),
    });
    let stopTimer = (): void => undefined;
    try {
      for await (const line of lines) {
        batch.answer(factsOfAnswer(line, url));
        if (batch.size === 0) stopTimer = clock.timer(endMs, () => batch.abort());
      }
    } finally {
      stopTimer();
    }
    batch.fail(new AgentError('bad-answer', url, 'the answer has no result for an image'));
  }
}

/** Limit of one line of an answer. The facts of a digest come with documents. */
function maxBytesOf({ reference }: ImageRequest): number {
  return maxFactsBytes + (reference.digest === undefined ? 0 : maxDocumentsLength);
}

interface Item {
  readonly request: ImageRequest;
  readonly call: FactsCall;
  readonly settle: (settled: Promise<ImageFacts>) => void;
}

/** The images of one request. It is aborted when no caller waits for it any more. */
class Batch {
  readonly url: string;
  readonly #stop = new AbortController();
  readonly #items = new Set<Item>();
  readonly #requested = new Set<string>();
  /** One for all images: to make an error costs a quarter of a lookup. */
  #late: AgentError | undefined;

  constructor(url: string) {
    this.url = url;
  }

  /** Images without an answer. */
  get size(): number {
    return this.#items.size;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Limit of all lines for the images without an answer. */
  get maxBytes(): number {
    return [...this.#items].reduce((sum, { request }) => sum + maxBytesOf(request), 0);
  }

  get maxLineBytes(): number {
    return Math.max(...[...this.#items].map(({ request }) => maxBytesOf(request)));
  }

  add(request: ImageRequest, call: FactsCall): Promise<ImageFacts> {
    const { promise, resolve } = Promise.withResolvers<ImageFacts>();
    const giveUp = (): void => {
      item.settle(Promise.reject(this.#noAnswer()));
      if (this.#items.size === 0) this.abort();
    };
    const item: Item = {
      request,
      call,
      settle: (settled) => {
        this.#items.delete(item);
        call.signal.removeEventListener('abort', giveUp);
        resolve(settled);
      },
    };
    this.#items.add(item);
    this.#requested.add(request.image);
    call.signal.addEventListener('abort', giveUp, { once: true });
    if (call.signal.aborted) giveUp();
    return promise;
  }

  body(now: number): unknown {
    const items = [...this.#items];
    const { namespace, serviceAccount } = items[0]?.request ?? {};
    const credentials = items.flatMap(({ request }) => request.pullCredentials);
    const deadlineMs = Math.max(...items.map(({ call }) => call.deadline)) - now;
    return {
      images: items.map(({ request: { image, pullPolicy, knownDigest } }) => ({
        image,
        pullPolicy,
        knownDigest,
      })),
      namespace,
      ...(credentials.length > 0 && { auths: toAuths(credentials) }),
      serviceAccount,
      deadlineMs: Math.max(leastDeadlineMs, Math.floor(deadlineMs)),
    };
  }

  enter(state: RequestState): void {
    for (const { call } of this.#items) call.onState(state);
  }

  /** @throws AgentError for an image that was not requested */
  answer(facts: ImageFacts): void {
    for (const item of this.#items) {
      if (item.request.image !== facts.image) continue;
      if (facts.unchanged && facts.digest !== item.request.knownDigest)
        throw new AgentError('bad-answer', this.url, 'a result confirms another digest');
      item.settle(Promise.resolve(facts));
      return;
    }
    // A caller may have given up meanwhile.
    if (!this.#requested.has(facts.image))
      throw new AgentError('bad-answer', this.url, 'a result is about another image');
  }

  /** Fails the images without an answer. */
  fail(error: unknown): void {
    for (const item of this.#items) item.settle(Promise.reject(error));
  }

  abort(): void {
    this.#stop.abort(this.#noAnswer());
  }

  #noAnswer(): AgentError {
    return (this.#late ??= new AgentError('timeout', this.url, 'no answer in time'));
  }
}
