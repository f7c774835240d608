/** The notes on broken images, kept in memory by a watch on their ConfigMap. */
import {
  brokenImagesOf,
  noBrokenImages,
  parseBroken,
  type BrokenImages,
} from '../images/sources/broken-images.ts';
import type { NamedObject } from '../kube/watch/reflector.ts';
import { watchConfigMap } from './config-map.ts';

export interface WatchedBrokenImages extends BrokenImages {
  close(): void;
}

/** Starts to watch archwright's own `namespace`; until the first answer nothing counts as broken. */
export function watchBrokenImages(options: NamedObject): WatchedBrokenImages {
  let current = noBrokenImages;
  const watch = watchConfigMap(options, (data) => {
    const notes = parseBroken(data);
    current = notes.length === 0 ? noBrokenImages : brokenImagesOf(notes, () => options.clock.now());
  });
  return {
    brokenOn: (digest, inNamespace) => current.brokenOn(digest, inNamespace),
    requiredLevel: (digest, inNamespace) => current.requiredLevel(digest, inNamespace),
    get size() {
      return current.size;
    },
    close: () => watch.close(),
  };
}
