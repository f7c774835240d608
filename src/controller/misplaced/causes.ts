/**
 * Why pods were moved, so that none is moved twice for the same cause: a ConfigMap in our own namespace, one key for each
 * workload, set of images and architecture, whose value is a time. Pods of the workload that are older were there before
 * anything was done and may be moved; younger ones are successors. One of those on the wrong node again shows that moving
 * does not help (no webhook, a constraint that nobody sees here), and stays.
 *
 * The time is written before the first eviction, and taken back where that one is refused, as by a budget. A leader that ends
 * between the two is continued by the next one, because the pods are still older. Taking a key out, or the whole ConfigMap,
 * allows the workload to be moved again by the next leader.
 */
import { createHash } from 'node:crypto';
import type { KubeClient } from '../../kube/api/client.ts';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { ownLabels } from '../own-objects.ts';
import { paths } from '../../kube/api/paths.ts';

export interface Cause {
  /** Of the workload. */
  readonly uid: string;
  readonly digests: readonly string[];
  /** Of the node where its images cannot run. */
  readonly architecture: string;
}

export interface Causes {
  /**
   * Since when pods of a cause have been moved; server time, milliseconds.
   * @throws KubeError
   */
  since(cause: Cause, signal: AbortSignal): Promise<number | undefined>;
  /**
   * Writes down that pods of a cause are moved from now on. The oldest notes leave where there are too many.
   * @throws KubeError
   */
  add(cause: Cause, since: number, signal: AbortSignal): Promise<void>;
  /**
   * Takes back what was written down for an eviction that surely did not come about: nothing was moved, and pods that are made
   * meanwhile are no successors.
   * @throws KubeError
   */
  takeBack(cause: Cause, signal: AbortSignal): Promise<void>;
}

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** 60 bytes each: well below the 1 MiB that an object may have. */
const maxCauses = 5000;
const keyLength = 32;
const keyForm = /^[0-9a-f]{32}$/u;

/** Makes the memory of one leader; the ConfigMap is read once, and nobody else writes it. */
export function createCauses(options: {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
}): Causes {
  const { client, namespace, name } = options;
  const path = paths.configMaps(namespace, name);
  let known: Map<string, number> | undefined;

  async function read(signal: AbortSignal): Promise<Map<string, number>> {
    if (known) return known;
    const found = new Map<string, number>();
    const { data = {} } = (await get(signal)) ?? {};
    for (const [key, value] of Object.entries(data)) {
      const since = typeof value === 'string' ? Date.parse(value) : Number.NaN;
      if (keyForm.test(key) && !Number.isNaN(since)) found.set(key, since);
    }
    return (known = found);
  }

  async function get(signal: AbortSignal): Promise<ConfigMap | undefined> {
    try {
      return await client.get<ConfigMap>(path, { signal });
    } catch (error) {
      if (error instanceof KubeError && error.code === 'not-found') return undefined;
      throw error;
    }
  }

  async function write(data: Readonly<Record<string, string | null>>, signal: AbortSignal): Promise<void> {
    try {
      await client.patch(path, { type: 'merge', body: { data } }, { signal });
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
      // Somebody who deletes it wants what was noted to be forgotten.
      known = new Map();
      if (Object.values(data).every((value) => value === null)) return;
      const metadata = { name, namespace, labels: ownLabels };
      const set = Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null));
      await client.create(
        paths.configMaps(namespace),
        { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: set },
        { signal },
      );
    }
  }

  return {
    since: async (cause, signal) => (await read(signal)).get(keyOf(cause)),
    add: async (cause, since, signal) => {
      const key = keyOf(cause);
      const causes = await read(signal);
      const surplus = [...causes]
        .sort(([, a], [, b]) => a - b)
        .slice(0, Math.max(0, causes.size + 1 - maxCauses))
        .map(([old]) => old);
      const gone = Object.fromEntries(surplus.map((old) => [old, null]));
      await write({ ...gone, [key]: new Date(since).toISOString() }, signal);
      for (const old of surplus) known?.delete(old);
      known?.set(key, since);
    },
    takeBack: async (cause, signal) => {
      const key = keyOf(cause);
      await write({ [key]: null }, signal);
      known?.delete(key);
    },
  };
}

function keyOf({ uid, digests, architecture }: Cause): string {
  const text = JSON.stringify([uid, [...digests].sort(), architecture]);
  return createHash('sha256').update(text).digest('hex').slice(0, keyLength);
}
