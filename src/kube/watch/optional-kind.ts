/**
 * Kinds that may be missing in a cluster. While their definition is not installed, the API server answers
 * lists and watches with 404, or with 403 without the right to read them. This client turns both into an
 * empty collection and retries from time to time. A 403 for a collection that was readable before stays an
 * error: an API server refuses everything at its start until it has loaded its roles.
 */
import type { KubeClient } from '../api/client.ts';
import { KubeError } from '../api/errors.ts';
import type { ReflectorOptions } from './reflector.ts';

/** Delay until a newly installed kind is noticed. */
const lookAgainMs = 30_000;

/** A watch from here begins with all objects (Kubernetes API concepts, "Get State and Start at Any"). */
const anyVersion = '0';
const emptyList = { metadata: { resourceVersion: anyVersion }, items: [] };

/** The same client for reading kinds that may not exist. */
export function forOptionalKind({
  client,
  clock,
  log,
}: Pick<Required<ReflectorOptions<never>>, 'client' | 'clock' | 'log'>) {
  const refused = new Set<string>();
  /** Paths with an answer. */
  const readable = new Set<string>();
  const absent = new Set<string>();

  function answered(path: string): void {
    readable.add(path);
    absent.delete(path);
  }

  /** A missing definition is a choice. A missing right is a mistake, so it is logged once. */
  function isAbsent(error: unknown, path: string): boolean {
    if (!(error instanceof KubeError)) return false;
    if (error.code === 'forbidden' && readable.has(path)) return false;
    if (error.code === 'forbidden' && !refused.has(path)) {
      refused.add(path);
      log.warn({ path, error: error.message }, 'no right to read these objects; they count as absent');
    }
    return error.code === 'not-found' || error.code === 'forbidden';
  }

  return {
    ...client,
    /** Whether the collection counted as absent at the last request. */
    isAbsent: (path: string) => absent.has(path),
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
    async *lines(...[path, options]: Parameters<KubeClient['lines']>) {
      try {
        for await (const line of client.lines(path, options)) {
          answered(path);
          yield line;
        }
      } catch (error) {
        if (!isAbsent(error, path)) throw error;
        absent.add(path);
        // If a list had objects, only a new list shows that they are gone.
        if (options.query?.['resourceVersion'] !== anyVersion)
          throw new KubeError('gone', `GET ${path}`, 'this kind no longer exists', { cause: error });
        await clock.sleep(lookAgainMs, options.signal);
      }
    },
  };
}
