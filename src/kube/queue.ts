/**
 * A work queue of keys: each key is worked on by one worker at a time, a key added while it is worked on is worked on once
 * more, and a key whose work failed comes back after a pause that grows (client-go util/workqueue).
 */
export interface WorkQueue {
  /** Adds a key now, or after a while; an earlier time wins over a later one. */
  add(key: string, afterMs?: number): void;
  /** Forgets how often the key failed. */
  forget(key: string): void;
  readonly size: number;
  /** Resolves when nothing is queued (timers of later keys do not count) and nothing is worked on; for tests. */
  idle(): Promise<void>;
  /** Stops taking keys and resolves when what is worked on has ended. */
  stop(): Promise<void>;
}
