/**
 * Correlates events before they are written. Similar ones (same object, type and reason) become one after ten
 * of them within ten minutes. An object with many events loses those beyond a burst.
 *
 * Rules: client-go tools/record/events_cache.go (EventAggregator, EventSourceObjectSpamFilter, and their
 * defaults).
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { EventText, ObjectReference } from './event.ts';

const similar = { most: 10, withinMs: 10 * 60_000 };
const spam = { burst: 25, oneMoreMs: 5 * 60_000 };
/** Remembered objects and messages; client-go's size of each cache. */
const remembered = 4096;

export class Correlation {
  readonly #groups = new BoundedMap<string, { readonly messages: Set<string>; readonly lastAt: number }>(
    remembered,
  );
  readonly #buckets = new BoundedMap<string, { readonly tokens: number; readonly at: number }>(remembered);

  /**
   * @param at monotonic, milliseconds
   * @returns the message to write, and a key: events with the same key are counted up on one object.
   *   `undefined` if the object is over its limit.
   */
  correlate(
    about: ObjectReference,
    { type, reason, message }: EventText,
    at: number,
  ): { readonly key: string; readonly message: string } | undefined {
    const { apiVersion, kind, namespace = '', name, uid = '' } = about;
    const object = JSON.stringify([apiVersion, kind, namespace, name, uid]);
    const group = `${object} ${type} ${reason}`;
    const combined = this.#isCombined(group, message, at);
    if (this.#isSpam(object, at)) return undefined;
    return combined
      ? { key: group, message: `(combined from similar events): ${message}` }
      : { key: `${group} ${message}`, message };
  }

  /** Whether there are too many messages similar to this one. */
  #isCombined(group: string, message: string, at: number): boolean {
    const known = this.#groups.get(group);
    const isFresh = known !== undefined && at - known.lastAt <= similar.withinMs;
    const messages = isFresh ? known.messages : new Set<string>();
    this.#groups.set(group, { messages, lastAt: at });
    if (messages.size >= similar.most) return !messages.has(message);
    messages.add(message);
    return false;
  }

  #isSpam(object: string, at: number): boolean {
    const known = this.#buckets.get(object) ?? { tokens: spam.burst, at };
    const tokens = Math.min(spam.burst, known.tokens + (at - known.at) / spam.oneMoreMs);
    this.#buckets.set(object, { tokens: tokens >= 1 ? tokens - 1 : tokens, at });
    return tokens < 1;
  }
}
