/** Listeners of a discovery, and the wait for its first answer. */
import { unlessAborted } from '../../async/wait.ts';
import type { AgentAddress } from './discovery.ts';

export interface Changes {
  /** Takes a new list; listeners run only where it differs from the last. */
  readonly set: (agents: readonly AgentAddress[]) => void;
  readonly current: () => readonly AgentAddress[];
  readonly ready: (signal: AbortSignal) => Promise<void>;
  readonly onChange: (listener: () => void) => void;
  readonly close: () => void;
}

/**
 * A cluster has 5,000 nodes at most (Kubernetes, "Considerations for large clusters"), each with one agent. What a
 * resolver or an API server lists beyond that is not looked at.
 */
export const maxAgents = 5000;

/** Makes an empty list without listeners. */
export function createChanges(): Changes {
  const listeners = new Set<() => void>();
  const first = Promise.withResolvers<void>();
  let agents: readonly AgentAddress[] = [];
  let text = '[]';
  return {
    set: (found) => {
      const sorted = found.toSorted((a, b) => (a.url < b.url ? -1 : 1)).slice(0, maxAgents);
      const sortedText = JSON.stringify(sorted);
      const changed = sortedText !== text;
      agents = sorted;
      text = sortedText;
      first.resolve();
      if (changed) for (const listener of listeners) listener();
    },
    current: () => agents,
    ready: (signal) => unlessAborted(first.promise, signal).catch(() => undefined),
    onChange: (listener) => {
      listeners.add(listener);
    },
    close: () => {
      listeners.clear();
      first.resolve();
    },
  };
}
