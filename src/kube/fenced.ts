/**
 * A client for a leader: every write waits for the limiter, and none is sent once leadership is lost, however long ago it
 * was prepared. Reads pass.
 */
import type { KubeClient } from './client.ts';
import type { Limiter } from './limiter.ts';

export interface FencedOptions {
  readonly client: KubeClient;
  /** Aborts when nothing may be written any more. */
  readonly leading: AbortSignal;
  readonly limiter: Limiter;
}
