/** Reads collections in pages. Rules: Kubernetes API concepts, "Retrieving large results sets in chunks". */
import type { GetOptions, KubeClient } from './client.ts';
import { isCode } from './errors.ts';

export interface Page<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[] | null;
}

export interface PagesOptions extends Omit<GetOptions, 'maxBytes'> {
  /** Shared by all lists of one kind: each list then starts with a suitable size. */
  readonly size?: PageSize;
}

/**
 * Every page of a collection.
 * @throws KubeError, also `gone` if the pages expire before the last one is read; the signal's reason
 */
export async function* pagesOf<T>(
  client: Pick<KubeClient, 'get'>,
  path: string,
  { query = {}, size = new PageSize(), ...options }: PagesOptions,
): AsyncGenerator<Page<T>, void> {
  let token = '';
  do {
    const selection = { ...query, ...(token !== '' && { continue: token }) };
    const page = await size.read((limit, maxBytes) =>
      client.get<Page<T>>(path, { ...options, query: { limit, ...selection }, maxBytes }),
    );
    options.signal.throwIfAborted();
    yield page;
    token = page.metadata?.continue ?? '';
  } while (token !== '');
}

/** Every object of a collection. @throws as `pagesOf` */
export async function* objectsOf<T>(...collection: Parameters<typeof pagesOf>): AsyncGenerator<T, void> {
  for await (const { items } of pagesOf<T>(...collection)) yield* items ?? [];
}

/** Three copies of it are in memory at a time: as bytes, as text, as objects. */
const maxPageBytes = 16 * 1024 * 1024;
/** A page that is too large after all costs one request in nine. */
const growAfter = 8;
const step = 4;

/**
 * The number of objects in a page. Most objects have a few kilobytes, so a page has 500. Nodes that list
 * every image, or pods with a workflow, have a hundred kilobytes each. A page of those would fill the memory,
 * so it is aborted, and the next pages are smaller, until several were read: a few large objects must not make
 * every later list go object by object.
 */
export class PageSize {
  readonly #most: number;
  #size: number;
  /** Pages read with this size. */
  #pages = 0;

  constructor(most = 500) {
    this.#most = most;
    this.#size = most;
  }

  /**
   * Reads one page.
   * @param get requests up to `limit` objects of up to `maxBytes` together
   * @throws errors of `get`; `too-large` if one object is too large
   */
  async read<T>(get: (limit: number, maxBytes: number) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const page = await get(this.#size, maxPageBytes);
        this.#pages += 1;
        if (this.#pages >= growAfter) this.#set(this.#size * step);
        return page;
      } catch (error) {
        if (!isCode(error, 'too-large') || this.#size === 1) throw error;
        this.#set(Math.ceil(this.#size / step));
      }
    }
  }

  #set(size: number): void {
    this.#size = Math.min(size, this.#most);
    this.#pages = 0;
  }
}
