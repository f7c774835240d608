/** Tags that lost or gained architectures, as the controller noted them. */
import { ownNames } from '../../src/names/own-names.ts';
import type { ClusterObjects } from '../../src/cluster/cluster.ts';
import { readConfigMaps } from '../../src/cluster/config-map.ts';
import { createReferenceCache, validReference } from '../../src/images/references/reference.ts';
import { parseDrifted, type DriftedTag } from '../../src/images/sources/drifted-tags.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';

/** By image as a pod writes it. */
export type DriftOf = (image: string) => DriftedTag | undefined;

/**
 * Reads the controller's notes, once.
 * @param configuration without a `namespace`, all namespaces are searched
 * @returns knows no tag without the permission
 */
export async function readDrift(
  { namespace, name }: Pick<Configuration, 'namespace' | 'name'>,
  cluster: Pick<ClusterObjects, 'read'>,
  signal: AbortSignal,
): Promise<DriftOf> {
  const found = await readConfigMaps({ namespace, name: ownNames({ name }).drift }, cluster, signal);
  const byImage = new Map((found ?? []).flatMap(parseDrifted).map((tag) => [tag.image, tag]));
  const parse = createReferenceCache();
  return (image) => {
    if (byImage.size === 0) return undefined;
    const reference = validReference(image, parse);
    return reference && byImage.get(reference.text);
  };
}
