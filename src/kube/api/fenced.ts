/**
 * A client for a leader. Every write waits for the rate limiter. After leadership is lost, no write is sent
 * and writes under way are aborted. Reads pass. A `Retry-After` of the server delays all writes, except after
 * a refused eviction, which concerns one workload only.
 */
import type { CallOptions, KubeClient } from './client.ts';
import { isCode, KubeError } from './errors.ts';
import type { RateLimiter } from '../../async/rate-limiter.ts';

export interface FencedOptions {
  readonly client: KubeClient;
  /** Absent: only `holds` counts, for the last events of a leader that ends. */
  readonly leading?: AbortSignal;
  /**
   * Whether the lease still holds by the clock. Checked before each write, and again on its open connection:
   * a process that was stopped for a while may run other work before the timer that aborts `leading`.
   */
  readonly holds?: () => boolean;
  /** Absent: writes have a limit of their own, as events do. */
  readonly limiter?: RateLimiter;
}

/** Writes of a leader, or of `archwright clean`: a large cluster's API server takes many times as many. */
export const leaderWrites = { perSecond: 400, burst: 800 } as const;

const longestPauseMs = 30_000;

/**
 * Puts the fence around a client. Closing it does not close that client.
 * @returns a client whose writes also fail with `not-leading`
 */
export function fencedClient(options: FencedOptions): KubeClient {
  const { client, leading, limiter } = options;

  function refuse(where: string, what: string): void {
    if (!leading?.aborted && (options.holds?.() ?? true)) return;
    throw new KubeError('not-leading', where, `${where}: ${what}: this replica does not lead any more`);
  }

  async function write<T>(
    where: string,
    asker: AbortSignal,
    send: (call: Pick<CallOptions, 'signal' | 'beforeSend'>) => Promise<T>,
  ): Promise<T> {
    refuse(where, 'not sent');
    const signal = leading ? AbortSignal.any([asker, leading]) : asker;
    try {
      await limiter?.take(signal);
    } catch (cause) {
      refuse(where, 'not sent');
      throw new KubeError('timeout', where, `${where}: gave up waiting for its turn`, { cause });
    }
    refuse(where, 'not sent');
    try {
      return await send({ signal, beforeSend: () => refuse(where, 'not sent') });
    } catch (error) {
      refuse(where, 'broken off');
      slowDown(error, where);
      throw error;
    }
  }

  function slowDown(error: unknown, where: string): void {
    if (!isCode(error, 'too-many-requests') || error.retryAfterMs === undefined) return;
    if (!where.endsWith('/eviction')) limiter?.pause(Math.min(error.retryAfterMs, longestPauseMs));
  }

  return {
    ...client,
    create: (path, object, call) =>
      write(`POST ${path}`, call.signal, (sent) => client.create(path, object, { ...call, ...sent })),
    patch: (path, patch, call) =>
      write(`PATCH ${path}`, call.signal, (sent) => client.patch(path, patch, { ...call, ...sent })),
    delete: (path, call) =>
      write(`DELETE ${path}`, call.signal, (sent) => client.delete(path, { ...call, ...sent })),
    close: () => undefined,
  };
}
