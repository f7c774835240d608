/** At the start, memory takes the facts that the agents share, so that a rollout asks no registry again. */
import type { Clock } from '../async/clock.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { FactsMemory } from '../images/memory/memory.ts';
import type { Log } from '../telemetry/log.ts';

export interface WarmUpOptions {
  readonly fleet: Pick<Fleet, 'shared'>;
  readonly memory: Pick<FactsMemory, 'learn'>;
  readonly log: Log;
  readonly clock: Clock;
  /** Ends the warm-up with the facts that memory has by then. */
  readonly signal: AbortSignal;
}

/** Never fails: with an empty memory the webhook asks its agents, which is slower and nothing worse. */
export async function warmUp(options: WarmUpOptions): Promise<void> {
  const { fleet, memory, log, clock, signal } = options;
  const started = clock.monotonic();
  let learned = 0;
  try {
    for await (const facts of fleet.shared(signal)) {
      memory.learn(facts);
      learned += 1;
      if (signal.aborted) break;
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, 'not all agents could share their image facts');
  }
  const durationMs = Math.round(clock.monotonic() - started);
  log.info({ learned, durationMs, complete: !signal.aborted }, 'memory is warm');
}
