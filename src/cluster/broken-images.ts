/** The notes on broken images, kept in memory by a watch on their ConfigMap. */
import {
  brokenImagesOf,
  noBrokenImages,
  parseBroken,
  type BrokenImages,
} from '../images/sources/broken-images.ts';
import type { KubeClient } from '../kube/api/client.ts';
import type { KubeObject } from '../kube/api/objects.ts';
import { startReflector } from '../kube/watch/reflector.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { paths } from '../kube/api/paths.ts';

export interface WatchedBrokenImages extends BrokenImages {
  close(): void;
}

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Starts to watch archwright's own `namespace`; until the first answer nothing counts as broken. */
export function watchBrokenImages(options: {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}): WatchedBrokenImages {
  const { client, namespace, name, clock, log } = options;
  let current = noBrokenImages;
  const reflector = startReflector<ConfigMap>({
    client,
    path: paths.configMaps(namespace),
    fieldSelector: `metadata.name=${name}`,
    trim: (object) => object,
    log,
    clock,
  });
  reflector.onChange(() => {
    const notes = parseBroken(reflector.get(namespace, name)?.data);
    current = notes.length === 0 ? noBrokenImages : brokenImagesOf(notes, () => clock.now());
  });
  return {
    brokenOn: (digest, inNamespace) => current.brokenOn(digest, inNamespace),
    get size() {
      return current.size;
    },
    close: () => reflector.stop(),
  };
}
