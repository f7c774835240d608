/**
 * The number of objects in a page of a list. Most objects have a few kilobytes, and 500 of them make a page. Nodes that list every
 * image, or pods that carry a workflow, have a hundred each. A page of those would fill the memory, so it is aborted, and the
 * next pages are smaller.
 */
import { KubeError } from './errors.ts';

export interface PageSize {
  /**
   * Reads one page.
   * @param get asks for so many objects, and takes so many bytes
   * @throws what `get` throws, `too-large` if one object is too large
   */
  read<T>(get: (limit: number, maxBytes: number) => Promise<T>): Promise<T>;
}

/** Three copies of it are in memory at a time: as bytes, as text, as objects. */
const maxPageBytes = 16 * 1024 * 1024;
const most = 500;

/**
 * Remembers the size for one list, or for all lists of one kind.
 * @param first how many objects are asked for at first
 */
export function createPageSize(first = most): PageSize {
  let size = first;
  return {
    read: async (get) => {
      for (;;) {
        try {
          return await get(size, maxPageBytes);
        } catch (error) {
          if (!(error instanceof KubeError) || error.code !== 'too-large' || size === 1) throw error;
          size = Math.ceil(size / 4);
        }
      }
    },
  };
}
