/** References by the text that a pod writes, so that an image that is used again and again is parsed once. */
import { BoundedMap } from '../../async/bounded-map.ts';
import { parseReference, type Reference } from './reference.ts';

/** As many images as a large cluster uses at a time; about 2 MiB. */
const defaultSize = 4096;

/** Longer texts are parsed each time. Real ones are shorter: a path has at most 255 characters, a tag 128, a digest 135. */
export const maxCachedLength = 1024;

/**
 * Makes a parser that remembers.
 * @returns like `parseReference`; throws InvalidReference as that does, and does not remember it
 */
export function createReferenceCache(size: number = defaultSize): (image: string) => Reference {
  const parsed = new BoundedMap<string, Reference>(size);
  return (image) => {
    // The oldest leave first: to note each use would cost the warm path more than to parse again now and then.
    const known = parsed.peek(image);
    if (known) return known;
    const reference = parseReference(image);
    if (image.length <= maxCachedLength) parsed.set(image, reference);
    return reference;
  };
}
