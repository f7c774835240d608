/** Requests as the API server reads them: collection, object, subresource; label and field selectors. */
import type { StoredObject } from './objects.ts';

export interface Target {
  /** Identifies the kind of object: `/api/v1 pods`. */
  readonly collection: string;
  readonly apiVersion: string;
  readonly resource: string;
  /** Empty for all namespaces, and for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  /** `status`, `eviction`, `log`, … or empty. */
  readonly subresource: string;
}

export function parsePath(path: string): Target | undefined {
  const [, version, rest] = /^\/(api\/v1|apis\/[^/]+\/[^/]+)\/(.+)$/.exec(path) ?? [];
  if (version === undefined || rest === undefined) return undefined;
  const parts = rest.split('/').map((part) => decodeURIComponent(part));
  const isOfNamespace = parts[0] === 'namespaces' && !/^(?:status|finalize)?$/.test(parts[2] ?? '');
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

/** Whether the API server defines the resource: items of a list have no kind. */
export function isBuiltIn({ apiVersion }: Target): boolean {
  const [group = ''] = apiVersion.includes('/') ? apiVersion.split('/') : [''];
  return !group.includes('.') || group.endsWith('.k8s.io');
}

export type Selector = (object: StoredObject) => boolean;

const fields: Readonly<Record<string, string>> = {
  pods: 'spec.nodeName status.phase spec.serviceAccountName spec.schedulerName spec.restartPolicy',
  events: 'involvedObject.kind involvedObject.name involvedObject.namespace involvedObject.uid reason type',
  secrets: 'type',
  nodes: 'spec.unschedulable',
  namespaces: 'status.phase',
  certificatesigningrequests: 'spec.signerName',
};

/** @returns `undefined` if the server would respond with 400 */
export function parseSelector(resource: string, query: URLSearchParams): Selector | undefined {
  const labels = (query.get('labelSelector') ?? '').trim();
  const byField = query.get('fieldSelector') ?? '';
  return all([
    ...(labels === '' ? [] : labels.split(/,(?![^(]*\))/).map((part) => requirement(part.trim()))),
    ...(byField === '' ? [] : byField.split(',').map((part) => fieldRequirement(resource, part))),
  ]);
}

function all(parts: readonly (Selector | undefined)[]): Selector | undefined {
  const each = parts.filter((part) => part !== undefined);
  return each.length === parts.length ? (object) => each.every((part) => part(object)) : undefined;
}

function requirement(text: string): Selector | undefined {
  const labels = (object: StoredObject): Readonly<Record<string, string>> => object.metadata.labels ?? {};
  const [, not, only] = /^(!?)\s*([\w./-]+)$/.exec(text) ?? [];
  if (only !== undefined) return (object) => only in labels(object) === (not === '');
  const [, key, operator, value] = /^([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)$/.exec(text) ?? [];
  if (key !== undefined) return (object) => (labels(object)[key] === value) === (operator !== '!=');
  const [, member, kind, list] = /^([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(text) ?? [];
  if (member === undefined || list === undefined) return undefined;
  const values = new Set(list.split(',').map((each) => each.trim()));
  return (object) => values.has(labels(object)[member] ?? '\0') === (kind === 'in');
}

function fieldRequirement(resource: string, text: string): Selector | undefined {
  const [, field, operator, value] = /^([\w.]+)(==|=|!=)(.*)$/.exec(text) ?? [];
  const known = ['metadata.name', 'metadata.namespace', ...(fields[resource]?.split(' ') ?? [])];
  if (field === undefined || !known.includes(field)) return undefined;
  return (object) => (textAt(object, field) === value) === (operator !== '!=');
}

function textAt(object: unknown, field: string): string {
  let at = object;
  for (const key of field.split('.')) at = (at as Record<string, unknown> | undefined)?.[key];
  return typeof at === 'string' ? at : typeof at === 'boolean' ? String(at) : '';
}
