/**
 * Kinds that a cluster may not have: while their definition is not installed, the API server answers 404 to lists and
 * watches. To a reflector that looks like a failure; through this client it looks like an empty collection, which is looked
 * at again from time to time.
 */
import { KubeError } from '../../kube/errors.ts';
import type { KubeClient } from '../../kube/client.ts';

/** Nobody waits for a kind that comes later. */
const lookAgainMs = 30_000;

const emptyList = { metadata: { resourceVersion: '' }, items: [] };

/**
 * The same client for reading one kind that may not exist.
 * @param sleep waits; injected by tests
 */
export function forOptionalKind(
  client: KubeClient,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
): KubeClient {
  return {
    ...client,
    get: async <T>(...[path, options]: Parameters<KubeClient['get']>): Promise<T> => {
      try {
        return await client.get<T>(path, options);
      } catch (error) {
        if (isAbsent(error)) return emptyList as T;
        throw error;
      }
    },
    async *lines(path, options) {
      try {
        yield* client.lines(path, options);
      } catch (error) {
        if (!isAbsent(error)) throw error;
        // Where there was something to watch before, only a new list says that it is gone. An empty version stands for a
        // list that was not there: a watch that starts with it begins with all that exists.
        if (options.query?.['resourceVersion'] !== '')
          throw new KubeError('gone', `GET ${path}`, 'the kind is not installed any more', { cause: error });
        await sleep(lookAgainMs, options.signal);
      }
    },
  };
}

function isAbsent(error: unknown): boolean {
  return error instanceof KubeError && error.code === 'not-found';
}
