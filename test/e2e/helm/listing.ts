/** A listing of everything in a cluster with its contents, for comparing before and after. */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { patience } from '../cluster/harness.ts';

interface Group {
  readonly preferredVersion: { readonly groupVersion: string };
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

type Fields = Record<string, unknown>;
interface Item extends Fields {
  readonly metadata: Fields & { readonly name: string; readonly namespace?: string };
}

/** Written by the API server about an object, and not part of what somebody wanted. */
const bookkeeping = new Set(['managedFields', 'resourceVersion', 'uid', 'creationTimestamp', 'generation']);
/** By which nodes and the parts of the API server say that they live. */
const livingNamespaces = new Set(['kube-node-lease', 'kube-system']);

/** `kind namespace/name` → its contents as JSON. */
export type Listing = ReadonlyMap<string, string>;

/** Everything but events, signs of life, bookkeeping and status. */
export async function listEverything(client: KubeClient): Promise<Listing> {
  const { groups } = await client.get<{ readonly groups: readonly Group[] }>('/apis', { signal: patience() });
  const bases = [
    '/api/v1',
    ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`),
  ];
  const listing = new Map<string, string>();
  for (const base of bases) {
    const { resources } = await client.get<{ readonly resources: readonly Resource[] }>(base, {
      signal: patience(),
    });
    for (const { name, kind, verbs } of resources) {
      if (!verbs.includes('list') || name === 'events' || name === 'componentstatuses') continue;
      const { items } = await client.get<{ readonly items: readonly Item[] }>(`${base}/${name}`, {
        signal: patience(),
      });
      for (const { metadata, status: _status, apiVersion: _version, kind: _kind, ...rest } of items) {
        if (name === 'leases' && livingNamespaces.has(metadata.namespace ?? '')) continue;
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

/** What is different, a line each; nothing where both are the same byte for byte. */
export function differences(before: Listing, after: Listing): readonly string[] {
  const keys = [...new Set([...before.keys(), ...after.keys()])].sort();
  return keys.flatMap((key) => {
    const [was, is] = [before.get(key), after.get(key)];
    if (was === is) return [];
    if (was === undefined) return [`left behind: ${key}: ${is ?? ''}`];
    if (is === undefined) return [`gone: ${key}`];
    return [`changed: ${key}:\n  before ${was}\n  after  ${is}`];
  });
}
