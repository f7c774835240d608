/** The pull secrets of a pod, read from the cluster by name, only if an image is unknown without them. */
import { isObjectName, type CredentialSource, type SourceProblem } from '../credentials/credential.ts';
import { createPullSecretSource, pullSecretPart } from '../credentials/sources/pull-secrets.ts';
import type { Clock } from '../async/clock.ts';
import { LoadingCache, type Loaded } from '../async/loading-cache.ts';
import { FairSemaphore, type Leave } from '../async/fair-semaphore.ts';
import { unlessAborted } from '../async/wait.ts';
import { BoundedMap } from '../async/bounded-map.ts';
import { didYouMean } from '../names/suggestion.ts';
import type { Log } from '../telemetry/log.ts';
import { counter, type Counter, type Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';

export const pullSecretReads = counter(
  'archwright_pull_secret_reads_total',
  'Pull secrets and service accounts read.',
  { outcome: ['found', 'missing', 'failed'] },
);

export interface PullSecretNames {
  readonly names: readonly string[];
  /** Its pull secrets count if `names` is empty. */
  readonly serviceAccount?: string;
}

export interface PullSecrets {
  /** Sends no request. False if there is surely no pull secret. */
  mayHave(wanted: PullSecretNames): boolean;
  /**
   * The pod's pull secrets as one source, in the pod's order. As in the kubelet, secrets that are missing or
   * unreadable are left out. Missing ones are problems of the source. @throws the signal's reason if aborted
   */
  source(namespace: string, wanted: PullSecretNames, signal: AbortSignal): Promise<CredentialSource>;
}

export const noPullSecrets: CredentialSource = createPullSecretSource([]);

/** Pods name one or two. The API server accepts thousands, and each costs a request. */
const maxSecrets = 20;

/** Pods name one or two; more missing names are not typing mistakes. */
const maxMistakes = 3;

/**
 * A suggestion compares the missing name with others of the namespace, whose authors choose length and number.
 * Three missing names take 10 ms; with 1000 names of the longest kind they took 7 s.
 */
const maxSuggestions = 20;
const maxSuggestionLength = 63;

/** Size of a cached Secret without its data: names, type, a few objects. */
const entryBytes = 512;

/**
 * Requests to the API server at a time, a third of them for one busy namespace. The other half of the client's
 * connections is for everything else, such as the Lease: thousands of pods may name 20 new Secrets each.
 */
const concurrentReads = { places: 16, maxWaiting: 1024 };

/** The API server answers a GET by name within milliseconds. */
const loadTimeoutMs = 5000;

/** About as many as the pods of a large cluster name. */
const maxEntries = 1000;

/** One may have 256 KiB. Real pull secrets have 1 KiB, so 1000 of them fit many times. */
const maxBytes = 16 * 1024 * 1024;

/** A changed Secret applies as soon as with the kubelet, which watches or polls Secrets each minute. */
const usualKeepMs = 60_000;

type Load<T> = (namespace: string, name: string, signal: AbortSignal) => Promise<T | undefined>;

/** Makes the reader. Without a cluster no pod has a pull secret. */
export function createPullSecrets(options: {
  readonly cluster: Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> | undefined;
  /** How long a Secret is kept, milliseconds. */
  readonly keepMs?: number;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log?: Log | undefined;
}): PullSecrets {
  const { cluster, keepMs = usualKeepMs, clock, metrics, log } = options;
  if (cluster === undefined) return { mayHave: () => false, source: () => Promise.resolve(noPullSecrets) };
  const count = (outcome: string): Counter => metrics.counter(pullSecretReads, { outcome });
  const counts = { found: count('found'), missing: count('missing'), failed: count('failed') };
  const places = new FairSemaphore(concurrentReads);

  /** Caches `load`. A caller with an aborted signal stops waiting; the request goes on for the next caller. */
  function cached<T>(load: Load<T>, sizeOf: (value: T) => number): Load<T> {
    const bytesOf = (value: T | undefined): number => (value === undefined ? 0 : sizeOf(value));
    const cache = new LoadingCache<T | undefined>({ clock, maxEntries, size: { bytesOf, maxBytes } });

    async function loadOne(namespace: string, name: string): Promise<Loaded<T | undefined>> {
      const signal = AbortSignal.timeout(loadTimeoutMs);
      let leave: Leave | undefined;
      try {
        leave = await places.enter(namespace, signal);
        const value = await load(namespace, name, signal);
        (value === undefined ? counts.missing : counts.found).inc();
        return { value, expiresAt: clock.monotonic() + keepMs };
      } catch (error) {
        counts.failed.inc();
        throw error;
      } finally {
        leave?.();
      }
    }

    return async (namespace, name, signal) => {
      // No other object exists: `..` would be another path, and a name of a megabyte would be kept.
      if (!isObjectName({ namespace, name })) return undefined;
      return await unlessAborted(
        cache.get(`${namespace}/${name}`, () => loadOne(namespace, name)),
        signal,
      );
    };
  }

  const existing = new BoundedMap<string, { readonly namespace: string; readonly name: string }>(maxEntries);
  const secretOf = cached(
    async (namespace, name, signal) => {
      const secret = await cluster.secret(namespace, name, signal);
      const key = `${namespace}/${name}`;
      if (secret) existing.set(key, { namespace, name });
      else {
        existing.delete(key);
        log?.warn({ namespace, secret: name }, 'a pull secret of a pod does not exist');
      }
      return secret && pullSecretPart(secret);
    },
    ({ data = {} }) => Object.values(data).reduce((sum, text) => sum + text.length, entryBytes),
  );
  const secretsOfAccount = cached(
    async (namespace, name, signal) =>
      (await cluster.serviceAccountPullSecrets(namespace, name, signal)).slice(0, maxSecrets),
    () => 0,
  );

  /** The right to list Secrets would reveal their content: names that were read before are suggested. */
  function namesIn(namespace: string): readonly string[] {
    return [...existing.values()]
      .flatMap((one) => (one.namespace === namespace ? [one.name] : []))
      .filter((name) => name.length <= maxSuggestionLength)
      .slice(-maxSuggestions)
      .reverse();
  }

  return {
    mayHave: ({ names, serviceAccount }) => names.length > 0 || serviceAccount !== undefined,
    source: async (namespace, { names, serviceAccount }, signal) => {
      let wanted = names;
      if (wanted.length === 0 && serviceAccount !== undefined)
        wanted = (await secretsOfAccount(namespace, serviceAccount, signal)) ?? [];
      if (wanted.length === 0) return noPullSecrets;
      const lookedUp = wanted.slice(0, maxSecrets);
      const read = await Promise.allSettled(lookedUp.map((name) => secretOf(namespace, name, signal)));
      signal.throwIfAborted();
      const found = read.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const present = found.filter((secret) => secret !== undefined);
      if (present.length === found.length) return createPullSecretSource(present);
      const absent = lookedUp.filter((_, at) => read[at]?.status === 'fulfilled' && !read[at].value);
      const known = absent.length <= maxMistakes ? namesIn(namespace) : [];
      const problems = absent.map((name): SourceProblem => {
        const hint = name.length > maxSuggestionLength ? '' : didYouMean(name, known);
        const message = `there is no such Secret${hint}`;
        return { source: 'pull-secret', origin: `${namespace}/${name}`, message };
      });
      return createPullSecretSource(present, problems);
    },
  };
}

/** The pull secrets of a pod; `undefined` if they cannot be read in time, which is logged. */
export async function readPullSecrets(
  { pullSecrets, log }: { readonly pullSecrets: PullSecrets; readonly log: Log },
  namespace: string,
  wanted: PullSecretNames,
  signal: AbortSignal,
): Promise<CredentialSource | undefined> {
  try {
    return await pullSecrets.source(namespace, wanted, signal);
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error, namespace }, 'pull secrets could not be read');
    return undefined;
  }
}
