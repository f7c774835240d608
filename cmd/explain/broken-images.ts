/** The records of broken images (exec format errors) in the cluster. */
import {
  brokenImagesOf,
  noBrokenImages,
  parseBroken,
  type BrokenImages,
} from '../../src/images/sources/broken-images.ts';
import type { KubeObject } from '../../src/kube/api/objects.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { PodContext } from './context.ts';
import { paths } from '../../src/kube/api/paths.ts';

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, unknown>>;
}

interface List {
  readonly items?: readonly ConfigMap[];
}

/**
 * Reads the records, once.
 * @param configuration without a `namespace`, all namespaces are searched for the ConfigMap's name
 * @returns none without a cluster or without the permission
 */
export async function brokenImagesAround(
  { namespace, brokenImagesName }: Pick<Configuration, 'namespace' | 'brokenImagesName'>,
  surroundings: Pick<PodContext, 'read'>,
  stop: AbortSignal,
): Promise<BrokenImages> {
  const query = { fieldSelector: `metadata.name=${brokenImagesName}` };
  const found = await surroundings.read<List>(paths.configMaps(namespace), stop, query);
  const notes = (found?.items ?? []).flatMap(({ data }) => parseBroken(data));
  return notes.length === 0 ? noBrokenImages : brokenImagesOf(notes, () => systemClock.now());
}
