/** At the start: memory takes what the agents know already, so that a rollout asks no registry again. */
import type { Fleet } from '../fleet/fleet.ts';
import type { FactsMemory } from '../images/memory/memory.ts';
import type { Log } from '../telemetry/log.ts';

export interface WarmUpOptions {
  readonly fleet: Pick<Fleet, 'shared'>;
  readonly memory: Pick<FactsMemory, 'learn'>;
  readonly log: Log;
  /** Ends the warm-up with what was learned by then. */
  readonly timeoutMs: number;
}

/**
 * Never fails: a webhook without warm memory asks its agents, which is slower and nothing worse.
 * @returns how many facts were taken
 */
export async function warmUp(options: WarmUpOptions): Promise<number> {
  const { fleet, memory, log, timeoutMs } = options;
  const started = performance.now();
  const signal = AbortSignal.timeout(timeoutMs);
  let learned = 0;
  try {
    for await (const facts of fleet.shared(signal)) {
      memory.learn(facts);
      learned += 1;
      if (signal.aborted) break;
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, 'the agents could not tell all they know');
  }
  const durationMs = Math.round(performance.now() - started);
  log.info({ learned, durationMs, complete: !signal.aborted }, 'memory is warm');
  return learned;
}
