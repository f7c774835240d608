/** The pull secrets of a pod, read from the cluster by name, only if an image is unknown without them. */
import type { CredentialSource, SourceProblem } from '../credentials/credential.ts';
import { createPullSecretSource, pullSecretPart } from '../credentials/sources/pull-secrets.ts';
import type { Clock } from '../async/clock.ts';
import { LoadingCache, type Loaded } from '../async/loading-cache.ts';
import { unlessAborted } from '../async/wait.ts';
import { BoundedMap } from '../async/bounded-map.ts';
import { didYouMean } from '../names/suggestion.ts';
import type { Log } from '../telemetry/log.ts';
import type { Counter, Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';
import { pullSecretReads } from './metrics.ts';

export interface PullSecretNames {
  readonly names: readonly string[];
  /** Its pull secrets count if `names` is empty. */
  readonly serviceAccount?: string;
}

export interface PullSecrets {
  /** Without a request: false if there is surely no pull secret. */
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

const defaultAccount = 'default';

/** Pods name one or two; more missing names are not typing mistakes. */
const maxMistakes = 3;

/** Size of a cached Secret without its data: names, type, a few objects. */
const entryBytes = 512;

/** Makes the reader. Without a cluster no pod has a pull secret. */
export function createPullSecrets(options: {
  readonly cluster: Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> | undefined;
  readonly keepMs: number;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log?: Log | undefined;
}): PullSecrets {
  const { cluster, keepMs, clock, metrics, log } = options;
  if (cluster === undefined) return { mayHave: () => false, source: () => Promise.resolve(noPullSecrets) };
  const count = (outcome: string): Counter => metrics.counter(pullSecretReads, { outcome });
  const counts = { found: count('found'), missing: count('missing'), failed: count('failed') };
  const common = { keepMs, clock, counts };
  const existing = new BoundedMap<string, { readonly namespace: string; readonly name: string }>(maxEntries);
  const secretOf = objectCache({
    ...common,
    load: async (namespace, name, signal) => {
      const secret = await cluster.secret(namespace, name, signal);
      const key = `${namespace}/${name}`;
      if (secret) existing.set(key, { namespace, name });
      else {
        existing.delete(key);
        log?.warn({ namespace, secret: name }, 'a pull secret of a pod does not exist');
      }
      return secret && pullSecretPart(secret);
    },
    sizeOf: ({ data = {} }) => Object.values(data).reduce((sum, text) => sum + text.length, entryBytes),
  });
  const secretsOfAccount = objectCache({
    ...common,
    load: async (namespace, name, signal) =>
      (await cluster.serviceAccountPullSecrets(namespace, name, signal)).slice(0, maxSecrets),
  });

  /** The right to list Secrets would reveal their content: suggestions need names from other sources. */
  async function missing(
    namespace: string,
    name: string,
    account: string | undefined,
    signal: AbortSignal,
  ): Promise<SourceProblem> {
    const load = account === undefined ? undefined : secretsOfAccount(namespace, account, signal);
    const ofAccount = await load?.catch(() => undefined);
    const known = [...existing.values()].flatMap((one) => (one.namespace === namespace ? [one.name] : []));
    const others = [...known, ...(ofAccount ?? [])].filter((other) => other !== name);
    const message = `there is no such Secret${didYouMean(name, others)}`;
    return { source: 'pull-secret', origin: `${namespace}/${name}`, message };
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
      const account = absent.length <= maxMistakes ? (serviceAccount ?? defaultAccount) : undefined;
      const problems = await Promise.all(absent.map((name) => missing(namespace, name, account, signal)));
      return createPullSecretSource(present, problems);
    },
  };
}

interface ObjectCacheOptions<T> {
  readonly load: (namespace: string, name: string, signal: AbortSignal) => Promise<T | undefined>;
  readonly keepMs: number;
  /** Bytes of a value in memory. Default: 0. */
  readonly sizeOf?: (value: T) => number;
  readonly clock: Clock;
  readonly counts: { readonly found: Counter; readonly missing: Counter; readonly failed: Counter };
}

/** The API server answers a GET by name within milliseconds. */
const loadTimeoutMs = 5000;

/** About as many as the pods of a large cluster name. */
const maxEntries = 1000;

/** A Secret may have 1 MiB. Real pull secrets have 1 KiB, so 1000 of them fit many times. */
const maxBytes = 16 * 1024 * 1024;

/** Caches `load`. A caller with an aborted signal stops waiting; the request goes on for the next caller. */
function objectCache<T>(options: ObjectCacheOptions<T>): ObjectCacheOptions<T>['load'] {
  const { clock, counts, keepMs, sizeOf = () => 0 } = options;
  const cache = new LoadingCache<T | undefined>({
    clock,
    maxEntries,
    size: { bytesOf: (value) => (value === undefined ? 0 : sizeOf(value)), maxBytes },
  });

  async function load(namespace: string, name: string): Promise<Loaded<T | undefined>> {
    try {
      const value = await options.load(namespace, name, AbortSignal.timeout(loadTimeoutMs));
      (value === undefined ? counts.missing : counts.found).inc();
      return { value, expiresAt: clock.monotonic() + keepMs };
    } catch (error) {
      counts.failed.inc();
      throw error;
    }
  }

  return (namespace, name, signal) =>
    unlessAborted(
      cache.get(`${namespace}/${name}`, () => load(namespace, name)),
      signal,
    );
}
