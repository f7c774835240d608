/**
 * Lookups in progress. Requests for the same image, scope, namespace and age share one. Each lookup holds a
 * place. Neither a namespace nor a registry host can use the places up (`fair-semaphore.ts`), nor can many of
 * both together (`proven-hosts.ts`). So pods of other namespaces and images of other registries are looked up at
 * once while some registries keep their callers waiting.
 */
import type { Clock } from '../../async/clock.ts';
import { FairSemaphore, FairSemaphores, Overloaded, type Leave } from '../../async/fair-semaphore.ts';
import { RunTimeout, SingleFlight } from '../../async/single-flight.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import {
  failedFacts,
  type FactsErrorCode,
  type ImageFacts,
  type ImageFactsSource,
  type ImageRequest,
  type LookupOptions,
} from '../facts/facts.ts';
import type { FactsMetrics } from './metrics.ts';
import { ProvenHosts } from './proven-hosts.ts';
import { keyOf, scopeOf } from './scope.ts';

export interface LookupLimits {
  /** Time limit of waiting for a place and of the lookup, milliseconds. */
  readonly timeoutMs: number;
  readonly places: number;
  /** Places at one registry host. */
  readonly placesPerHost: number;
}

interface LookupsOptions {
  readonly source: ImageFactsSource;
  readonly limits: LookupLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: FactsMetrics;
}

/** @param hasWaited whether the answer may be known meanwhile */
export type Lookup = (signal: AbortSignal, hasWaited: boolean) => Promise<ImageFacts>;

/** Each waiting lookup holds some kilobytes. Two thousand pods of a namespace may wait for new images. */
const maxWaiting = 8192;

export class Lookups {
  readonly #source: ImageFactsSource;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #metrics: FactsMetrics;
  readonly #running: SingleFlight<ImageFacts>;
  readonly #places: FairSemaphore;
  readonly #placesOfHosts: FairSemaphores;
  readonly #hosts: ProvenHosts;
  #isClosed = false;

  constructor(options: LookupsOptions) {
    const { limits, clock } = options;
    this.#source = options.source;
    this.#clock = clock;
    this.#log = options.log;
    this.#metrics = options.metrics;
    this.#running = new SingleFlight({ limit: { ms: limits.timeoutMs, clock } });
    this.#places = new FairSemaphore({ places: limits.places, maxWaiting });
    this.#placesOfHosts = new FairSemaphores({ places: limits.placesPerHost, maxWaiting });
    this.#hosts = new ProvenHosts(limits.places);
  }

  get size(): number {
    return this.#running.size;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Joins the lookup of the same request, or waits for a place and starts one. */
  run(request: ImageRequest, lookup: Lookup): Promise<ImageFacts> {
    const key = keyOfLookup(request);
    (this.#running.has(key) ? this.#metrics.joined : this.#metrics.requested).inc();
    return this.#running.run(key, async (signal) => {
      let leave: Leave | undefined;
      try {
        signal.throwIfAborted();
        const free = this.#tryEnter(request);
        leave = free ?? (await this.#enter(request, signal));
        return await lookup(signal, !free);
      } catch (error) {
        return this.#notStarted(request, error);
      } finally {
        leave?.();
      }
    });
  }

  /** Starts a lookup for which no pod waits, unless it runs or pods need the places. */
  runInBackground(request: ImageRequest, lookup: Lookup): void {
    const key = keyOfLookup(request);
    if (this.#isClosed || this.#running.has(key)) return;
    const leave = this.#tryEnter(request);
    if (!leave) return;
    this.#metrics.refreshed.inc();
    void this.#running.run(key, (signal) => lookup(signal, false)).finally(leave);
  }

  /** The answer of the source. Whatever happens, it is an answer. */
  async ask(request: ImageRequest, options: LookupOptions): Promise<ImageFacts> {
    const started = this.#clock.monotonic();
    const facts = await this.#answer(request, options);
    this.#hosts.record(request.reference.domain, facts, this.#clock.monotonic() - started);
    return facts;
  }

  async #answer(request: ImageRequest, options: LookupOptions): Promise<ImageFacts> {
    const { image } = request;
    try {
      const facts = await unlessAborted(this.#source.lookup(request, options), options.signal);
      // Warnings and events contain less.
      if (facts.error) this.#log.info({ image, ...facts.error }, 'an image could not be looked up');
      return facts;
    } catch (error) {
      if (this.#isClosed) return this.#failed(image, 'unavailable', 'the program is ending');
      if (error instanceof RunTimeout) return this.#failed(image, 'timeout', error.message);
      // A source answers with an error and does not throw one: this is a fault of ours.
      this.#log.error({ err: error, image }, 'the lookup of an image failed unexpectedly');
      return this.#failed(image, 'unavailable', 'the lookup of the image failed unexpectedly; see the log');
    }
  }

  /** Aborts the lookups that run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running.close(new Error('the program is ending'));
  }

  /** Facts that come from an agent or a file prove their registry host too. */
  proves({ reference: { domain } }: Pick<ImageRequest, 'reference'>, facts: ImageFacts): void {
    this.#hosts.record(domain, facts, 0);
  }

  #tryEnter({ namespace = '', reference: { domain } }: ImageRequest): Leave | undefined {
    const leaves: Leave[] = [];
    for (const enter of [
      () => this.#hosts.tryEnter(domain, namespace),
      () => this.#placesOfHosts.tryEnter(domain, namespace),
      () => this.#places.tryEnter(namespace),
    ]) {
      const leave = enter();
      if (!leave) {
        all(leaves)();
        return undefined;
      }
      leaves.push(leave);
    }
    return all(leaves);
  }

  /** Callers wait at a slow host without a place that others need. @throws Overloaded, or the reason */
  async #enter({ namespace = '', reference: { domain } }: ImageRequest, signal: AbortSignal): Promise<Leave> {
    const leaves: Leave[] = [];
    try {
      leaves.push(await this.#hosts.enter(domain, namespace, signal));
      leaves.push(await this.#placesOfHosts.enter(domain, namespace, signal));
      leaves.push(await this.#places.enter(namespace, signal));
      return all(leaves);
    } catch (error) {
      all(leaves)();
      throw error;
    }
  }

  /** The cause is neither the image nor its registry, so it is not remembered. */
  #notStarted({ image }: ImageRequest, error: unknown): ImageFacts {
    const others = 'other images of this namespace or registry';
    if (this.#isClosed) return this.#failed(image, 'unavailable', 'the program is ending');
    if (error instanceof Overloaded) {
      const message = `too many ${others} are looked up; the next attempt is in a moment`;
      return this.#failed(image, 'rate-limited', message);
    }
    if (!(error instanceof RunTimeout)) throw error;
    return this.#failed(image, 'timeout', `${error.message}: ${others} came first`);
  }

  #failed(image: string, code: FactsErrorCode, message: string): ImageFacts {
    return failedFacts(image, { code, message }, this.#clock.now());
  }
}

/** Agents answer from their own caches and have a queue for each namespace, so neither is shared. */
function keyOfLookup(request: ImageRequest): string {
  const { namespace = '', maxAgeMs } = request;
  return [keyOf(request), scopeOf(request), namespace, maxAgeMs].join(' ');
}

function all(leaves: readonly Leave[]): Leave {
  return () => {
    for (const leave of leaves) leave();
  };
}
