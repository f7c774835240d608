/**
 * Leaves a plugin alone for a while after it failed for an image. The kubelet needs nothing like this, because it asks
 * for the pods of one node and waits between its own attempts; an agent is asked for those of many nodes. The times are
 * those of the kubelet's waits between pulls (`ImagePullBackOff`), so a plugin is not run more often than there.
 */
import type { Clock } from '../../../src/async/clock.ts';
import type { PluginError } from '../run/plugin-error.ts';

export interface Failure {
  readonly image: string;
  readonly error: PluginError;
}

export interface Pauses {
  /** The failure that a key is paused for; `undefined` where the plugin may be run. */
  current(key: string): PluginError | undefined;
  failed(key: string, failure: Failure): void;
  succeeded(key: string): void;
  /** The latest failure that no success for the same image has followed. */
  latest(): Failure | undefined;
}

const firstMs = 10_000;
/** A program that hangs holds a place for a whole minute each time. */
const firstAfterTimeoutMs = 60_000;
const longestMs = 300_000;

/** More images than the pods of a cluster that fail at once; beyond it the oldest is forgotten. */
const maxKeys = 1000;

export function createPauses(clock: Clock): Pauses {
  const held = new Map<string, Failure & { readonly until: number; readonly ms: number }>();
  return {
    current(key) {
      const entry = held.get(key);
      return entry !== undefined && clock.monotonic() < entry.until ? entry.error : undefined;
    },
    failed(key, { image, error }) {
      const first = error.code === 'timeout' ? firstAfterTimeoutMs : firstMs;
      const before = held.get(key)?.ms ?? 0;
      const ms = Math.min(Math.max(first, before * 2), longestMs);
      held.delete(key);
      held.set(key, { image, error, ms, until: clock.monotonic() + ms });
      const [oldest] = held.keys();
      if (held.size > maxKeys && oldest !== undefined) held.delete(oldest);
    },
    succeeded: (key) => void held.delete(key),
    latest: () => [...held.values()].at(-1),
  };
}
