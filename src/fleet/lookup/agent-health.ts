/**
 * Agents that fail are left alone for a while, longer with each failure in a row, so that a dead node costs one
 * attempt now and then instead of one per question.
 */
import type { Clock } from '../../async/clock.ts';

export interface AgentHealth {
  /** The agent could not be reached, lost the connection or had no time. */
  failed(url: string): void;
  /** The agent did not answer in time, or another agent that was asked later answered first. */
  slow(url: string): void;
  answered(url: string): void;
  /** Milliseconds until the agent may be asked again; 0 when it may be asked now. */
  remainingMs(url: string): number;
  /** Forgets every agent that is not in this set. */
  keep(urls: ReadonlySet<string>): void;
}

const firstRestMs = 1000;
const maxRestMs = 30_000;
/** Being slow happens to any agent whose registry is slow; in a row it is a sign of a node that is gone. */
const maxSlow = 3;

interface Record {
  failures: number;
  slow: number;
  until: number;
}

/** Makes an empty record of failures. */
export function createAgentHealth(clock: Clock): AgentHealth {
  const records = new Map<string, Record>();

  function record(url: string): Record {
    const existing = records.get(url);
    if (existing) return existing;
    const made = { failures: 0, slow: 0, until: 0 };
    records.set(url, made);
    return made;
  }

  function failed(url: string): void {
    const entry = record(url);
    const now = clock.monotonic();
    // Questions that were under way together fail together; they are one failure.
    if (entry.until > now) return;
    entry.until = now + Math.min(maxRestMs, firstRestMs * 2 ** entry.failures);
    entry.failures = Math.min(entry.failures + 1, 10);
    entry.slow = 0;
  }

  return {
    failed,
    slow: (url) => {
      const entry = record(url);
      entry.slow += 1;
      if (entry.slow >= maxSlow) failed(url);
    },
    answered: (url) => {
      records.delete(url);
    },
    remainingMs: (url) => Math.max(0, (records.get(url)?.until ?? 0) - clock.monotonic()),
    keep: (urls) => {
      for (const url of records.keys()) if (!urls.has(url)) records.delete(url);
    },
  };
}
