/**
 * Every change that archwright's roles let it try: each top-level, metadata, spec and status field of each kind is set and
 * removed once, in dry runs under the account's token. The API server's OpenAPI documents name the fields.
 */
import { isDeepStrictEqual } from 'node:util';
import { concurrently } from '../../../src/async/concurrently.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { ignoring, KubeError } from '../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { until } from '../../support/until.ts';
import type { Binding } from '../cluster/control-plane/rights.ts';
import { patience, type Cluster } from '../cluster/harness.ts';

/** An object of a kind that archwright writes. */
export interface Example {
  /** The object to patch, or its path if it is there already. */
  readonly stored?: KubeObject | string;
  /** As archwright creates one. */
  readonly created?: KubeObject;
}

export interface Grant {
  readonly verb: string;
  readonly resource: string;
  /** Whether only for certain names. Then it creates by server-side apply. */
  readonly isNamed: boolean;
}

const rbac = '/apis/rbac.authorization.k8s.io/v1';

/** What the chart's roles let an account create and change. */
export async function grantsOf(cluster: Cluster, account: string): Promise<readonly Grant[]> {
  type Rule = { readonly verbs: string[]; readonly resources: string[]; readonly resourceNames?: string[] };
  const query = { labelSelector: 'app.kubernetes.io/part-of=archwright' };
  const found = new Map<string, Grant>();
  for (const kind of ['clusterrolebindings', 'rolebindings'])
    for (const { subjects = [], roleRef, metadata } of await cluster.list<Binding>(
      `${rbac}/${kind}`,
      query,
    )) {
      if (!subjects.some(({ name }) => name === account)) continue;
      const roles = roleRef.kind === 'Role' ? `namespaces/${metadata?.namespace}/roles` : 'clusterroles';
      const { rules } = await cluster.get<{ readonly rules: readonly Rule[] }>(
        `${rbac}/${roles}/${roleRef.name}`,
      );
      for (const { verbs, resources, resourceNames } of rules)
        for (const verb of verbs.filter((each) => ['create', 'patch', 'update'].includes(each)))
          for (const resource of resources) {
            const isNamed = resourceNames !== undefined;
            found.set(`${verb} ${resource} ${isNamed}`, { verb, resource, isNamed });
          }
    }
  return [...found.values()];
}

/** Values that would do harm. The others are made from the schemas. */
const harmful: Readonly<Record<string, unknown>> = {
  'metadata.annotations': { 'x.example/y': 'z' },
  'metadata.labels': { 'x.example/y': 'z' },
  'metadata.finalizers': ['x.example/stuck'],
  'metadata.ownerReferences': [{ apiVersion: 'v1', kind: 'Node', name: 'gone', uid: 'gone' }],
  'spec.taints': [{ key: 'x.example/y', effect: 'NoExecute' }],
  'spec.schedulingGates': [{ name: 'x.example/y' }],
  'spec.template': { spec: { hostPID: true } },
};

/** Parts of which each field is changed for itself, and fields that only the API server writes. */
const parts = new Set(['metadata', 'spec', 'status']);
const ignored = new Set([
  ...parts,
  'apiVersion',
  'kind',
  'metadata.managedFields',
  'metadata.resourceVersion',
]);

/** @returns the accepted changes, as `patch pods spec.tolerations` */
export async function acceptedChanges(
  cluster: Cluster,
  who: KubeClient,
  { verb, resource, isNamed }: Grant,
  { stored, created }: Example,
): Promise<readonly string[]> {
  const example = verb === 'create' ? created : stored;
  if (example === undefined) throw new Error(`no example: ${verb} ${resource}`);
  const path = typeof example === 'string' ? example : await objectPath(cluster, example);
  const before = typeof example === 'string' || verb !== 'create' ? await cluster.get(path) : example;
  const [, subresource] = resource.split('/');
  const send = (body: object): Promise<unknown> => {
    const options = { signal: patience(), query: { dryRun: 'All' } };
    if (verb === 'create' && isNamed) {
      const query = { dryRun: 'All', force: 'true' };
      return who.patch(path, { type: 'apply', body, fieldManager: 'archwright' }, { ...options, query });
    }
    if (verb === 'create') return who.create(path.slice(0, path.lastIndexOf('/')), body, options);
    const at = subresource === undefined ? path : `${path}/${subresource}`;
    return who.patch(at, { type: 'merge', body }, options);
  };
  // Otherwise every refusal below would mean nothing.
  if (verb === 'create') await send(before);
  const accepted = new Set<string>();
  await concurrently(await changesOf(cluster, path, before), 4, async ([field, value]) => {
    try {
      const after = await send(verb === 'create' ? merged(before, field, value) : merged({}, field, value));
      if (!isDeepStrictEqual(valueAt(before, field), valueAt(after, field)))
        accepted.add(`${verb} ${resource} ${field}`);
    } catch (error) {
      const codes = ['forbidden', 'invalid', 'bad-answer', 'conflict'];
      if (!(error instanceof KubeError && codes.includes(error.code))) throw error;
    }
  });
  return [...accepted];
}

export async function objectPath(cluster: Cluster, object: KubeObject): Promise<string> {
  return `${await cluster.pathOf(object)}/${object.metadata?.name ?? ''}`;
}

function merged(base: object, field: string, value: unknown): object {
  const [outer = '', inner] = field.split('.');
  if (inner === undefined) return { ...base, [outer]: value };
  return { ...base, [outer]: { ...(valueAt(base, outer) as object | undefined), [inner]: value } };
}

function valueAt(object: unknown, field: string): unknown {
  const step = (at: unknown, key: string): unknown => (at as Record<string, unknown> | undefined)?.[key];
  return field.split('.').reduce(step, object);
}

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-group-version-kind'?: readonly { readonly kind: string }[];
}

/** Each field with a new value; with `null` too if it has a value now. */
async function changesOf(cluster: Cluster, path: string, before: object) {
  const [group = ''] = /^\/(?:api|apis\/[^/]+)\/[^/]+/.exec(path) ?? [];
  type Document = { readonly components: { readonly schemas: Readonly<Record<string, Schema>> } };
  let schemas: Document['components']['schemas'] = {};
  // Published some time after the definition of a resource is established.
  await until(async () => {
    const document = await ignoring('not-found', cluster.get<Document>(`/openapi/v3${group}`));
    schemas = document?.components.schemas ?? {};
    return document !== undefined;
  }, `the schemas of ${group}`);

  function resolved(schema: Schema): Schema {
    const reference = schema.$ref ?? schema.allOf?.[0]?.$ref;
    return reference === undefined ? schema : (schemas[reference.split('/').at(-1) ?? ''] ?? {});
  }
  function sampleOf(schema: Schema): unknown {
    const {
      type,
      format,
      items = {},
      properties = {},
      additionalProperties,
      required = [],
    } = resolved(schema);
    if (format === 'date-time') return '2026-01-01T00:00:00.000000Z';
    if (format === 'byte') return 'eA==';
    if (type === 'integer' || type === 'number') return 7;
    if (type === 'boolean') return true;
    if (type === 'array') return [sampleOf(items)];
    if (additionalProperties) return { x: sampleOf(additionalProperties) };
    if (type !== 'object') return 'x';
    return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]));
  }

  const { kind } = before as { readonly kind?: string };
  const own = Object.values(schemas).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some((each) => each.kind === kind),
  );
  if (own === undefined) throw new Error(`no schema of ${kind}`);
  const fields = Object.entries(own.properties ?? {}).flatMap(([name, schema]) => {
    const inner = parts.has(name) ? Object.entries(resolved(schema).properties ?? {}) : [];
    return [[name, schema] as const, ...inner.map(([key, of]) => [`${name}.${key}`, of] as const)];
  });
  return fields
    .filter(([field]) => !ignored.has(field))
    .flatMap(([field, schema]): (readonly [field: string, value: unknown])[] => {
      const change = [field, harmful[field] ?? sampleOf(schema)] as const;
      return valueAt(before, field) === undefined ? [change] : [change, [field, null]];
    });
}
