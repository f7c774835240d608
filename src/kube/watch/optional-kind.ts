/**
 * Kinds that a cluster may not have: while their definition is not installed, the API server answers 404 to lists and
 * watches, and 403 where nobody thought of the right to read them. To a reflector that looks like a failure; through this
 * client it looks like an empty collection, which is looked at again from time to time. A refusal of what could be read
 * before is a failure all the same: an API server that starts refuses everything until it knows its roles.
 */
import type { Log } from '../../telemetry/log.ts';
import type { KubeClient } from '../api/client.ts';
import { KubeError } from '../api/errors.ts';

/** Nobody waits for a kind that comes later. */
const lookAgainMs = 30_000;

/** A watch from here begins with all that exists (Kubernetes API concepts, "Get State and Start at Any"). */
const anyVersion = '0';
const emptyList = { metadata: { resourceVersion: anyVersion }, items: [] };

export interface OptionalKindOptions {
  readonly client: KubeClient;
  /** Waits; injected by tests. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly log: Log;
}

export interface OptionalKindClient extends KubeClient {
  /** Whether a collection counted as absent when it was last asked for. */
  isAbsent(path: string): boolean;
}

/** The same client for reading kinds that may not exist. */
export function forOptionalKind({ client, sleep, log }: OptionalKindOptions): OptionalKindClient {
  const refused = new Set<string>();
  /** Paths that were answered. */
  const readable = new Set<string>();
  const absent = new Set<string>();

  function answered(path: string): void {
    readable.add(path);
    absent.delete(path);
  }

  /** A missing definition is a choice, a missing right is an oversight: somebody should hear of it, once. */
  function isAbsent(error: unknown, path: string): boolean {
    if (!(error instanceof KubeError)) return false;
    if (error.code === 'forbidden' && readable.has(path)) return false;
    if (error.code === 'forbidden' && !refused.has(path)) {
      refused.add(path);
      log.warn({ path, error: error.message }, 'objects may not be read and count as absent');
    }
    return error.code === 'not-found' || error.code === 'forbidden';
  }

  return {
    ...client,
    isAbsent: (path) => absent.has(path),
    get: async <T>(...[path, options]: Parameters<KubeClient['get']>): Promise<T> => {
      try {
        const answer = await client.get<T>(path, options);
        answered(path);
        return answer;
      } catch (error) {
        if (!isAbsent(error, path)) throw error;
        absent.add(path);
        return emptyList as T;
      }
    },
    async *lines(path, options) {
      try {
        for await (const line of client.lines(path, options)) {
          answered(path);
          yield line;
        }
      } catch (error) {
        if (!isAbsent(error, path)) throw error;
        absent.add(path);
        // Where there was something to watch before, only a new list says that it is gone.
        if (options.query?.['resourceVersion'] !== anyVersion)
          throw new KubeError('gone', `GET ${path}`, 'the kind is not there any more', { cause: error });
        await sleep(lookAgainMs, options.signal);
      }
    },
  };
}
