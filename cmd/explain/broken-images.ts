/** The notes on images that ended with an exec format error, as the webhook would find them in the cluster now. */
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
 * Reads them, once.
 * @param configuration without a `namespace`, which a person's rarely has, they are looked for by name in all of them
 * @returns none where there is no cluster, or where it does not let them be read
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
