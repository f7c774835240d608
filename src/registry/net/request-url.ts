/**
 * URLs of the distribution API below an endpoint: `<base>/<repository>/manifests|blobs/<object>`, with
 * `?ns=<namespace>` if the host is not the namespace itself (containerd `core/remotes/docker/resolver.go`).
 */
import type { Endpoint } from '../endpoints/endpoint.ts';

/**
 * The URL of a manifest or blob.
 * @param object a tag or a digest
 * @param scheme replaces the endpoint's scheme if it does not speak TLS
 * @returns undefined if repository or object hold characters that no reference can hold
 */
export function objectUrl(
  endpoint: Pick<Endpoint, 'base' | 'namespace' | 'namespaceParameter'>,
  repository: string,
  kind: 'manifests' | 'blobs',
  object: string,
  scheme?: 'http:',
): URL | undefined {
  const segments = [...repository.split('/'), kind, object];
  if (!segments.every((segment) => /^[A-Za-z0-9_][A-Za-z0-9_.:+-]*$/.test(segment))) return undefined;
  const url = new URL(endpoint.base);
  url.pathname = [...url.pathname.split('/'), ...segments].filter((part) => part !== '').join('/');
  url.search = endpoint.namespaceParameter ? new URLSearchParams({ ns: endpoint.namespace }).toString() : '';
  if (scheme) url.protocol = scheme;
  return url;
}

/** Query keys that describe the request and cannot hold a secret; a pre-signed URL has others. */
const shownKeys = new Set(['ns', 'service', 'scope']);

/** A URL for people: no user info, and only harmless query keys. */
export function shownUrl(url: URL): string {
  const query = [...url.searchParams].filter(([key]) => shownKeys.has(key));
  const search = query.length === 0 ? '' : `?${new URLSearchParams(query).toString()}`;
  return `${url.protocol}//${url.host}${url.pathname}${search}`;
}
