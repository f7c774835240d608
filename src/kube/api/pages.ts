/** Reads collections in pages. Rules: Kubernetes API concepts, "Retrieving large results sets in chunks". */
import type { KubeClient, Query } from './client.ts';
import { createPageSize, type PageSize } from './page-size.ts';

export interface Page<T> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[] | null;
}

export interface PagesOptions {
  readonly signal: AbortSignal;
  /** Selectors. */
  readonly query?: Query;
  /** Shared by all lists of one kind, so that each need not find out how large its objects are. */
  readonly size?: PageSize;
}

/**
 * Every page of a collection.
 * @throws KubeError, also `gone` if the pages expire on the server before the last one is read; the signal's reason
 */
export async function* pagesOf<T>(
  client: Pick<KubeClient, 'get'>,
  path: string,
  { signal, query = {}, size = createPageSize() }: PagesOptions,
): AsyncGenerator<Page<T>, void> {
  let token = '';
  do {
    const selection = { ...query, ...(token !== '' && { continue: token }) };
    const page = await size.read((limit, maxBytes) =>
      client.get<Page<T>>(path, { signal, query: { limit, ...selection }, maxBytes }),
    );
    signal.throwIfAborted();
    yield page;
    token = page.metadata?.continue ?? '';
  } while (token !== '');
}

/**
 * Every object of a collection.
 * @throws as `pagesOf`
 */
export async function* objectsOf<T>(...collection: Parameters<typeof pagesOf>): AsyncGenerator<T, void> {
  for await (const { items } of pagesOf<T>(...collection)) yield* items ?? [];
}
