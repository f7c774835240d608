/** API paths: which collection, which object, which subresource. */
export interface Target {
  /** Identifies the kind of object: `/api/v1 pods`. */
  readonly collection: string;
  /** `v1`, `apps/v1`. */
  readonly apiVersion: string;
  readonly resource: string;
  /** Empty for all namespaces, and for what belongs to none. */
  readonly namespace: string;
  /** Empty for the collection. */
  readonly name: string;
  /** `status`, `eviction`, `log`, … or empty. */
  readonly subresource: string;
}

/** Takes a path apart; undefined where it is no path of objects. */
export function parsePath(path: string): Target | undefined {
  const [, version, rest] = /^\/(api\/v1|apis\/[^/]+\/[^/]+)\/(.+)$/.exec(path) ?? [];
  if (version === undefined || rest === undefined) return undefined;
  const parts = rest.split('/').map((part) => decodeURIComponent(part));
  const isOfNamespace = parts[0] === 'namespaces' && parts[2] !== undefined && !ofNamespaces.has(parts[2]);
  const [resource = '', name = '', ...more] = isOfNamespace ? parts.slice(2) : parts;
  return {
    collection: `/${version} ${resource}`,
    apiVersion: version.replace(/^apis?\//, ''),
    resource,
    namespace: isOfNamespace ? (parts[1] ?? '') : '',
    name,
    subresource: more.join('/'),
  };
}

/** Subresources of a Namespace itself. */
const ofNamespaces: ReadonlySet<string> = new Set(['status', 'finalize']);

/** Whether the API server itself defines the resource, so that strategic merge patches work and list items have no kind. */
export function isBuiltIn({ apiVersion }: Target): boolean {
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : [''];
  return !group.includes('.') || group.endsWith('.k8s.io');
}
