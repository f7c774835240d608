/**
 * Kinds that a cluster may not have. While their definition is not installed, the API server answers lists and watches with
 * 404, or with 403 if the right to read them is missing. This client turns both into an empty collection, which is looked at
 * again from time to time. A 403 for a collection that was readable before is an error all the same: an API server that
 * starts refuses everything until it has loaded its roles.
 */
import type { KubeClient } from '../api/client.ts';
import { KubeError } from '../api/errors.ts';
import type { ReflectorOptions } from './reflector.ts';

/** A kind that is installed later may be noticed late. */
const lookAgainMs = 30_000;

/** A watch from here begins with all that exists (Kubernetes API concepts, "Get State and Start at Any"). */
const anyVersion = '0';
const emptyList = { metadata: { resourceVersion: anyVersion }, items: [] };

/** The same client for reading kinds that may not exist. */
export function forOptionalKind({
  client,
  clock,
  log,
}: Pick<Required<ReflectorOptions<never>>, 'client' | 'clock' | 'log'>) {
  const refused = new Set<string>();
  /** Paths that were answered. */
  const readable = new Set<string>();
  const absent = new Set<string>();

  function answered(path: string): void {
    readable.add(path);
    absent.delete(path);
  }

  /** A missing definition is a choice. A missing right is an oversight, so it is logged once. */
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
          throw new KubeError('gone', `GET ${path}`, 'the kind is not there any more', { cause: error });
        await clock.sleep(lookAgainMs, options.signal);
      }
    },
  };
}
