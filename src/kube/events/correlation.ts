/**
 * What happens to an event before it is written: similar ones (same object, type and reason, other messages) become one
 * after ten of them within ten minutes, and an object that has many events loses those beyond a burst.
 *
 * Rules: client-go tools/record/events_cache.go (EventAggregator, EventSourceObjectSpamFilter, and their defaults).
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { EventText, ObjectReference } from './event.ts';

export interface Correlated {
  /** Events with the same key are one object that is counted up. */
  readonly key: string;
  readonly message: string;
}

export interface Correlation {
  /**
   * @param at monotonic, milliseconds
   * @returns `undefined` if the object has had its share
   */
  correlate(about: ObjectReference, event: EventText, at: number): Correlated | undefined;
}

const similar = { most: 10, withinMs: 10 * 60_000 };
const spam = { burst: 25, oneMoreMs: 5 * 60_000 };
/** Objects and messages that are remembered; client-go's size of each cache. */
const remembered = 4096;

interface Similar {
  readonly messages: Set<string>;
  readonly lastAt: number;
}

interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export function createCorrelation(): Correlation {
  const groups = new BoundedMap<string, Similar>(remembered);
  const buckets = new BoundedMap<string, Bucket>(remembered);

  /** Whether the message is one of too many similar ones. */
  function isCombined(group: string, message: string, at: number): boolean {
    const known = groups.get(group);
    const isFresh = known !== undefined && at - known.lastAt <= similar.withinMs;
    const messages = isFresh ? known.messages : new Set<string>();
    if (messages.size < similar.most) messages.add(message);
    else if (!messages.has(message)) {
      groups.set(group, { messages, lastAt: at });
      return true;
    }
    groups.set(group, { messages, lastAt: at });
    return false;
  }

  function isSpam(object: string, at: number): boolean {
    const known = buckets.get(object) ?? { tokens: spam.burst, at };
    const tokens = Math.min(spam.burst, known.tokens + (at - known.at) / spam.oneMoreMs);
    buckets.set(object, { tokens: tokens >= 1 ? tokens - 1 : tokens, at });
    return tokens < 1;
  }

  return {
    correlate: (about, { type, reason, message }, at) => {
      const { apiVersion, kind, namespace = '', name, uid = '' } = about;
      const object = JSON.stringify([apiVersion, kind, namespace, name, uid]);
      const group = `${object} ${type} ${reason}`;
      const combined = isCombined(group, message, at);
      if (isSpam(object, at)) return undefined;
      return combined
        ? { key: group, message: `(combined from similar events): ${message}` }
        : { key: `${group} ${message}`, message };
    },
  };
}
