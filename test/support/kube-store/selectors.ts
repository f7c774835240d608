/** Label and field selectors as the API server reads them. */
import type { StoredObject } from './objects.ts';

export type Selector = (object: StoredObject) => boolean;

/** Fields that can be selected by, besides name and namespace; a real server refuses all others. */
const fields: Readonly<Record<string, readonly string[]>> = {
  pods: [
    'spec.nodeName',
    'status.phase',
    'spec.serviceAccountName',
    'spec.schedulerName',
    'spec.restartPolicy',
  ],
  events: [
    'involvedObject.kind',
    'involvedObject.name',
    'involvedObject.namespace',
    'involvedObject.uid',
    'reason',
    'type',
  ],
  secrets: ['type'],
  nodes: ['spec.unschedulable'],
  namespaces: ['status.phase'],
};

/** @returns undefined where the server would answer 400 */
export function parseSelector(resource: string, query: URLSearchParams): Selector | undefined {
  const byLabels = labelSelector(query.get('labelSelector') ?? '');
  const byFields = fieldSelector(resource, query.get('fieldSelector') ?? '');
  if (byLabels === undefined || byFields === undefined) return undefined;
  return (object) => byLabels(object) && byFields(object);
}

function all(parts: readonly (Selector | undefined)[]): Selector | undefined {
  const each = parts.filter((part) => part !== undefined);
  return each.length === parts.length ? (object) => each.every((part) => part(object)) : undefined;
}

function labelSelector(text: string): Selector | undefined {
  const parts = text.split(/,(?![^(]*\))/).map((part) => part.trim());
  return text.trim() === '' ? () => true : all(parts.map((part) => requirement(part)));
}

function requirement(text: string): Selector | undefined {
  const labels = (object: StoredObject): Readonly<Record<string, string>> => object.metadata.labels ?? {};
  const [, not, only] = /^(!?)\s*([\w./-]+)$/.exec(text) ?? [];
  if (only !== undefined) return (object) => only in labels(object) === (not === '');
  const [, key, operator, value] = /^([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)$/.exec(text) ?? [];
  if (key !== undefined) return (object) => (labels(object)[key] === value) === (operator !== '!=');
  const [, number, relation, bound] = /^([\w./-]+)([<>])(\d+)$/.exec(text) ?? [];
  if (number !== undefined) {
    const difference = (object: StoredObject): number => Number(labels(object)[number]) - Number(bound);
    return (object) => (relation === '>' ? difference(object) > 0 : difference(object) < 0);
  }
  const [, member, kind, list] = /^([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(text) ?? [];
  if (member === undefined || list === undefined) return undefined;
  const values = new Set(list.split(',').map((each) => each.trim()));
  return (object) => values.has(labels(object)[member] ?? '\0') === (kind === 'in');
}

function fieldSelector(resource: string, text: string): Selector | undefined {
  if (text === '') return () => true;
  return all(
    text.split(',').map((part) => {
      const [, field, operator, value] = /^([\w.]+)(==|=|!=)(.*)$/.exec(part) ?? [];
      const known = ['metadata.name', 'metadata.namespace', ...(fields[resource] ?? [])];
      if (field === undefined || !known.includes(field)) return undefined;
      return (object) => (textAt(object, field) === value) === (operator !== '!=');
    }),
  );
}

function textAt(object: unknown, field: string): string {
  let at = object;
  for (const key of field.split('.')) at = (at as Record<string, unknown> | undefined)?.[key];
  return typeof at === 'string' ? at : typeof at === 'boolean' ? String(at) : '';
}
