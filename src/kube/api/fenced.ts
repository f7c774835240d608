/**
 * A client for a leader. Every write waits for the rate limiter, and none is sent after leadership is lost; writes under way are
 * aborted then. Reads pass. A `Retry-After` of the server delays all writes, except that of a refused eviction, which is about
 * one workload only.
 */
import type { KubeClient } from './client.ts';
import { isCode, KubeError } from './errors.ts';
import type { RateLimiter } from '../../async/rate-limiter.ts';

export interface FencedOptions {
  readonly client: KubeClient;
  readonly leading: AbortSignal;
  /**
   * Whether the lease still holds by the clock. Checked right before each write: a process that was stopped for a while
   * runs other work before the timer that aborts `leading`.
   */
  readonly holds?: () => boolean;
  readonly limiter: RateLimiter;
}

const longestPauseMs = 30_000;

/**
 * Puts the fence around a client. Closing it does not close that client.
 * @returns a client whose writes also fail with `not-leading`
 */
export function fencedClient(options: FencedOptions): KubeClient {
  const { client, leading, limiter } = options;

  function refuse(where: string, what: string): void {
    if (!leading.aborted && (options.holds?.() ?? true)) return;
    throw new KubeError('not-leading', where, `${where}: ${what}: this replica does not lead any more`);
  }

  async function write<T>(
    where: string,
    asker: AbortSignal,
    send: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    refuse(where, 'not sent');
    const signal = AbortSignal.any([asker, leading]);
    try {
      await limiter.take(signal);
    } catch (cause) {
      refuse(where, 'not sent');
      throw new KubeError('timeout', where, `${where}: given up while waiting for its turn`, { cause });
    }
    refuse(where, 'not sent');
    try {
      return await send(signal);
    } catch (error) {
      refuse(where, 'broken off');
      slowDown(error, where);
      throw error;
    }
  }

  function slowDown(error: unknown, where: string): void {
    if (!isCode(error, 'too-many-requests') || error.retryAfterMs === undefined) return;
    if (!where.endsWith('/eviction')) limiter.pause(Math.min(error.retryAfterMs, longestPauseMs));
  }

  return {
    ...client,
    create: (path, object, call) =>
      write(`POST ${path}`, call.signal, (signal) => client.create(path, object, { ...call, signal })),
    patch: (path, patch, call) =>
      write(`PATCH ${path}`, call.signal, (signal) => client.patch(path, patch, { ...call, signal })),
    delete: (path, call) =>
      write(`DELETE ${path}`, call.signal, (signal) => client.delete(path, { ...call, signal })),
    close: () => undefined,
  };
}
