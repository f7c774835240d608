/**
 * How much of a list is asked for at a time. Most objects are some kilobytes, and 500 of them a page; but nodes that list every
 * image they have, or pods that carry a workflow, have a hundred each. A page of those would fill the memory of whoever reads
 * it, so it is broken off, and smaller ones are asked for from then on.
 */
import { KubeError } from './errors.ts';

export interface PageSize {
  /**
   * Reads one page.
   * @param get asks for so many objects, and takes so many bytes
   * @throws what `get` throws, `too-large` where one object is too large
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
