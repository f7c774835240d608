/** The pull secrets of a pod, read from the cluster by name and only when an image is not known without them. */
import type { CredentialSource } from '../credentials/credential.ts';
import { createPullSecretSource, pullSecretPart } from '../credentials/sources/pull-secrets.ts';
import type { Clock } from '../async/clock.ts';
import { LoadingCache, type Loaded } from '../async/loading-cache.ts';
import { unlessAborted } from '../async/wait.ts';
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
   * The pod's pull secrets as one source, in the pod's order. Those that do not exist or cannot be read now are left out, as the
   * kubelet leaves them out. @throws the reason of `signal` when it aborts first
   */
  source(namespace: string, wanted: PullSecretNames, signal: AbortSignal): Promise<CredentialSource>;
}

export const noPullSecrets: CredentialSource = createPullSecretSource([]);

/** Pods name one or two. The API server lets a pod name thousands, and each is a request to it. */
const maxSecrets = 20;

/** Of a kept Secret without its data: names, type, a few objects. */
const entryBytes = 512;

/** Makes the reader. Without a cluster no pod has a pull secret. */
export function createPullSecrets(options: {
  readonly cluster: Pick<Cluster, 'secret' | 'serviceAccountPullSecrets'> | undefined;
  readonly keepMs: number;
  readonly clock: Clock;
  readonly metrics: Metrics;
}): PullSecrets {
  const { cluster, keepMs, clock, metrics } = options;
  if (cluster === undefined) return { mayHave: () => false, source: () => Promise.resolve(noPullSecrets) };
  const count = (outcome: string): Counter => metrics.counter(pullSecretReads, { outcome });
  const counts = { found: count('found'), missing: count('missing'), failed: count('failed') };
  const common = { keepMs, clock, counts };
  const secretOf = objectCache({
    ...common,
    load: async (namespace, name, signal) => {
      const secret = await cluster.secret(namespace, name, signal);
      return secret && pullSecretPart(secret);
    },
    sizeOf: ({ data = {} }) => Object.values(data).reduce((sum, text) => sum + text.length, entryBytes),
  });
  const secretsOfAccount = objectCache({
    ...common,
    load: async (namespace, name, signal) =>
      (await cluster.serviceAccountPullSecrets(namespace, name, signal)).slice(0, maxSecrets),
  });

  return {
    mayHave: ({ names, serviceAccount }) => names.length > 0 || serviceAccount !== undefined,
    source: async (namespace, { names, serviceAccount }, signal) => {
      let wanted = names;
      if (wanted.length === 0 && serviceAccount !== undefined)
        wanted = (await secretsOfAccount(namespace, serviceAccount, signal)) ?? [];
      if (wanted.length === 0) return noPullSecrets;
      const read = await Promise.allSettled(
        wanted.slice(0, maxSecrets).map((name) => secretOf(namespace, name, signal)),
      );
      signal.throwIfAborted();
      return createPullSecretSource(
        read.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : [])),
      );
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

/** As many as the pods of a large cluster name at a time. */
const maxEntries = 1000;

/** A Secret may have 1 MiB; real pull secrets have 1 KiB, and 1000 of those fit many times. */
const maxBytes = 16 * 1024 * 1024;

/** Puts a cache in front of `load`. A caller whose signal aborts stops waiting; the request goes on for the next caller. */
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
