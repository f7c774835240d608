/** A listing of everything in a cluster, for comparing before and after. */
import { setTimeout as pause } from 'node:timers/promises';
import { KubeError } from '../../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import type { Cluster } from '../harness.ts';

interface Group {
  readonly preferredVersion: { readonly groupVersion: string };
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

/** `kind namespace/name` → contents as JSON. */
export type Listing = ReadonlyMap<string, string>;

type Fields = Readonly<Record<string, unknown>>;

/** Metadata that the API server sets. */
const bookkeeping = new Set(['managedFields', 'resourceVersion', 'uid', 'creationTimestamp', 'generation']);
/** Namespaces with heartbeat Leases of nodes and API servers. */
const heartbeats = new Set(['kube-node-lease', 'kube-system']);
const attempts = 30;

/** All objects without status, bookkeeping, events and heartbeats. @param skipped names of resources */
async function listEverything(cluster: Cluster, skipped: readonly string[] = []): Promise<Listing> {
  const { groups } = await cluster.get<{ readonly groups: readonly Group[] }>('/apis');
  const bases = [
    '/api/v1',
    ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`),
  ];
  const ignored = new Set(['events', 'componentstatuses', ...skipped]);
  const listing = new Map<string, string>();
  for (const base of bases) {
    const { resources } = await cluster.get<{ readonly resources: readonly Resource[] }>(base);
    for (const { name, kind, verbs } of resources) {
      if (!verbs.includes('list') || ignored.has(name)) continue;
      for (const object of await cluster.list<KubeObject & { readonly status?: unknown }>(
        `${base}/${name}`,
      )) {
        const { metadata = {}, status: _status, apiVersion: _version, kind: _kind, ...rest } = object;
        if (name === 'leases' && heartbeats.has(metadata.namespace ?? '')) continue;
        const kept = Object.fromEntries(Object.entries(metadata).filter(([key]) => !bookkeeping.has(key)));
        listing.set(
          `${base.replace(/^\/apis?\//, '')} ${kind} ${metadata.namespace ?? ''}/${metadata.name}`,
          JSON.stringify(sorted({ metadata: kept, ...rest })),
        );
      }
    }
  }
  return listing;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => sorted(each));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}

/** A line for each difference; empty if both are the same, byte for byte. */
function differences(before: Listing, after: Listing): readonly string[] {
  const keys = [...new Set([...before.keys(), ...after.keys()])].sort();
  return keys.flatMap((key) => {
    const [was, is] = [before.get(key), after.get(key)];
    if (was === is) return [];
    if (was === undefined) return [`left behind: ${key}: ${is ?? ''}`];
    if (is === undefined) return [`gone: ${key}`];
    return [`changed: ${key}:\n  before ${was}\n  after  ${is}`];
  });
}

/** Lists until nothing differs: pods, endpoints and definitions follow their owners. @returns differences */
export async function differencesFrom(cluster: Cluster, before: Listing): Promise<readonly string[]> {
  return retry(
    () => listEverything(cluster),
    (found) => differences(before, found),
    (left) => left.length === 0,
  );
}

/**
 * A listing that two readings agree on: controllers still write to objects that are new.
 * @param skipped names of resources
 */
export async function steadyListing(cluster: Cluster, skipped?: readonly string[]): Promise<Listing> {
  let last: Listing = new Map();
  const isSame = (found: Listing): boolean => differences(last, (last = found)).length === 0;
  const list = (): Promise<Listing> => listEverything(cluster, skipped);
  return retry(list, (found) => found, isSame);
}

/** @returns the first result that is right, or the last one */
async function retry<R>(
  list: () => Promise<Listing>,
  resultOf: (found: Listing) => R,
  isRight: (result: R) => boolean,
): Promise<R> {
  for (let attempt = 1; ; attempt += 1) {
    // A definition that comes or goes answers with errors for a moment.
    const found = await list().catch((error: unknown) => {
      if (attempt === attempts || !(error instanceof KubeError)) throw error;
      return undefined;
    });
    if (found !== undefined) {
      const result = resultOf(found);
      if (isRight(result) || attempt === attempts) return result;
    }
    await pause(1000);
  }
}
