/**
 * Determines in the background which credential groups can pull: the agent of each group that owns the
 * repository, so that all webhooks query the same one, which answers from memory.
 */
import { setMaxListeners } from 'node:events';
import { concurrently } from '../../async/concurrently.ts';
import { FairSemaphore } from '../../async/fair-semaphore.ts';
import { SingleFlight } from '../../async/single-flight.ts';
import type { ImageRequest } from '../../images/facts/facts.ts';
import { FleetLookup, type FleetLookupContext } from '../lookup/lookup.ts';
import type { Members } from './groups.ts';
import { keyOf, pullResultOf, type Pullability } from './pullability.ts';
import { rank } from './rendezvous.ts';

/** A burst of new repositories is spread over later admissions; each starts a survey of what is missing. */
const maxSurveys = 128;
/** Groups in one survey; the next survey has further groups. */
const maxGroups = 32;
/** Groups queried at the same time. */
const concurrency = 4;

export class Survey {
  readonly #context: FleetLookupContext;
  readonly #pullability: Pullability;
  readonly #surveys = new SingleFlight<void>();
  readonly #places = new FairSemaphore({ places: maxSurveys });
  readonly #stopping = new AbortController();

  constructor(context: FleetLookupContext, pullability: Pullability) {
    this.#context = context;
    this.#pullability = pullability;
    setMaxListeners(0, this.#stopping.signal);
  }

  /** Queries these groups, or joins a running survey; returns at the end, or at once if too many run. */
  async ask(request: ImageRequest, groups: readonly Members[]): Promise<void> {
    const key = keyOf(request);
    const leave = this.#surveys.has(key) ? () => undefined : this.#places.tryEnter(request.namespace ?? '');
    if (!leave || this.#stopping.signal.aborted) return leave?.();
    try {
      // The agent may answer from memory, whatever the pull policy of the pod.
      const query = { ...request, pullPolicy: 'IfNotPresent' } as const;
      await this.#surveys.run(key, async () => {
        await concurrently(groups.slice(0, maxGroups), concurrency, (group) => this.#askGroup(query, group));
      });
    } catch (error) {
      this.#context.log.error({ err: error }, 'a survey of credential groups ended unexpectedly');
    } finally {
      leave();
    }
  }

  close(): void {
    this.#stopping.abort();
  }

  async #askGroup(request: ImageRequest, { fingerprint, agents }: Members): Promise<void> {
    const ranked = rank(request.reference.repository, agents);
    const facts = await new FleetLookup(this.#context, request, this.#stopping.signal).askGroup(ranked);
    if (this.#stopping.signal.aborted) return;
    const result = facts && pullResultOf(facts);
    if (result === undefined) this.#pullability.noteUnknown(request, fingerprint);
    this.#context.meters.surveyed(result ?? 'unknown');
  }
}
