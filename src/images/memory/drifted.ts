/** Digests of drifted tags until a lookup confirms them: agents may remember the earlier ones. */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { ImageFacts, ImageRequest } from '../facts/facts.ts';
import { maxDriftedTags } from '../sources/drifted-tags.ts';
import { keyOf } from './scope.ts';

export class DriftedDigests {
  readonly #named = new BoundedMap<string, string>(maxDriftedTags);

  /** @param key of the image, without scope */
  set(key: string, digest: string): void {
    this.#named.set(key, digest);
  }

  /** Whether facts from an agent's memory are about another digest than the tag names now. */
  isOutdated(request: ImageRequest, { digest, source }: ImageFacts): boolean {
    if (this.#named.size === 0 || digest === undefined) return false;
    const key = keyOf(request);
    const named = this.#named.peek(key);
    if (named === undefined) return false;
    if (source === 'memory' && digest !== named) return true;
    this.#named.delete(key);
    return false;
  }
}
