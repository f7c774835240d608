/**
 * Keys of the taints that archwright has set, in an annotation of its Lease. They say which taints are archwright's after
 * `taintKey` has changed. A node's annotation alone may not: a compromised kubelet cannot change taints of its node, but it
 * can write annotations.
 */
import type { KubeClient } from '../../../kube/api/client.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import type { KubeObject } from '../../../kube/api/objects.ts';
import { own } from '../../../names/values.ts';
import type { TaintSettings } from './plan.ts';

export const taintKeysAnnotation = 'arch.example/taint-keys';

/** More than anyone changes `taintKey`; the oldest go. */
const maxKeys = 8;

export function recordedKeys(lease: KubeObject | undefined): readonly string[] {
  const text = own(lease?.metadata?.annotations, taintKeysAnnotation) ?? '';
  return text.split(',').filter(Boolean).slice(0, maxKeys);
}

/**
 * Every key of archwright's taints. The current one is recorded before it is first used. @throws KubeError
 * @param path of archwright's Lease
 */
export async function knownKeys(
  client: KubeClient,
  path: string,
  { taintKey, taintArchitectures }: TaintSettings,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lease = await ignoring('not-found', client.get<KubeObject>(path, { signal }));
  const recorded = recordedKeys(lease);
  const all = [taintKey, ...recorded.filter((key) => key !== taintKey)].slice(0, maxKeys);
  if (lease === undefined || taintArchitectures.length === 0 || recorded.includes(taintKey)) return all;
  const annotations = { [taintKeysAnnotation]: all.join(',') };
  await client.patch(path, { type: 'merge', body: { metadata: { annotations } } }, { signal });
  return all;
}
