/** A listing of everything in a cluster, for comparing before and after. */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { patience } from '../cluster/harness.ts';

interface Group {
  readonly preferredVersion: { readonly groupVersion: string };
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

/** Come and go by themselves, or only say what happened. */
const passing = new Set(['events', 'leases', 'componentstatuses']);

/** One line for each object, in order. */
export async function snapshot(client: KubeClient): Promise<readonly string[]> {
  const { groups } = await client.get<{ readonly groups: readonly Group[] }>('/apis', { signal: patience() });
  const bases = [
    '/api/v1',
    ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`),
  ];
  const lines = new Set<string>();
  for (const base of bases) {
    const { resources } = await client.get<{ readonly resources: readonly Resource[] }>(base, {
      signal: patience(),
    });
    for (const { name, kind, verbs } of resources) {
      if (!verbs.includes('list') || passing.has(name)) continue;
      const list = await client.get<{ readonly items: readonly KubeObject[] }>(`${base}/${name}`, {
        signal: patience(),
      });
      for (const { metadata } of list.items)
        lines.add(`${kind} ${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`);
    }
  }
  return [...lines].sort();
}

/** The listing as soon as it is the wanted one; else how it stays. Pods and endpoints go a moment after what they belong to. */
export async function settled(client: KubeClient, wanted: readonly string[]): Promise<readonly string[]> {
  return await again(client, (found) => JSON.stringify(found) === JSON.stringify(wanted));
}

/** The listing as soon as it is the same twice. */
export async function steady(client: KubeClient): Promise<readonly string[]> {
  let last = '';
  return await again(client, (found) => last === (last = JSON.stringify(found)));
}

/** @returns the first listing that is right, or the last one */
async function again(
  client: KubeClient,
  isRight: (found: readonly string[]) => boolean,
): Promise<readonly string[]> {
  for (let tries = 0; ; tries++) {
    // A definition that comes or goes answers with errors for a moment.
    const found = await snapshot(client).catch((error: unknown) => {
      if (tries === 20 || !(error instanceof KubeError)) throw error;
      return undefined;
    });
    if (found !== undefined && (isRight(found) || tries === 20)) return found;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
