/** Custom resource definitions in an API server: valid objects are accepted, invalid ones refused. */
import { readFile } from 'node:fs/promises';
import type { Test } from 'tap';
import { parse, stringify } from 'yaml';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { objectCases, podConfig, rolloutCases } from '../../../policy/resources/objects.ts';
import { type Cluster } from '../harness.ts';
import { like } from '../../../support/like.ts';

interface Definition extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

const group = '/apis/arch.example/v1alpha1';

const ownKinds = ['clusterpodplacementconfigs', 'podplacementconfigs', 'architecturerollouts'];
const ownDefinitions = ownKinds.map(
  (kind) => `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${kind}.arch.example`,
);

/**
 * Deletes the definitions that an uninstalled release has kept (`crds.keep`), and waits until they are gone.
 * @throws KubeError if it has not kept them
 */
export async function deleteKeptDefinitions(cluster: Cluster): Promise<void> {
  for (const path of ownDefinitions) {
    await cluster.get(path);
    await cluster.delete(path);
    await cluster.waitFor(path, (definition) => definition === undefined);
  }
}

export async function define(cluster: Cluster, text: string): Promise<void> {
  await cluster.applyYaml(text);
  const { metadata } = parse(text) as KubeObject;
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata?.name ?? ''}`;
  await cluster.waitFor<Definition>(path, isEstablished);
}

function isEstablished(definition: Definition | undefined): boolean {
  const conditions = definition?.status?.conditions ?? [];
  return conditions.some(({ type, status }) => type === 'Established' && status === 'True');
}

/** A kind of another program, with any fields. @param fields of `spec` that have defaults */
export function openDefinition(
  group: string,
  version: string,
  kind: string,
  scope: string,
  fields = {},
): string {
  const singular = kind.toLowerCase();
  const plural = singular.endsWith('s') ? singular : `${singular}s`;
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { openAPIV3Schema: { ...open, properties: { spec: { ...open, properties: fields } } } };
  return stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural, singular },
      scope,
      versions: [{ name: version, served: true, storage: true, subresources: { status: {} }, schema }],
    },
  });
}

export async function installDefinitions(cluster: Cluster): Promise<void> {
  for (const kind of ownKinds) {
    const file = new URL(`../../../../charts/archwright/files/crds/${kind}.yaml`, import.meta.url);
    await define(cluster, await readFile(file, 'utf8'));
  }
}

export async function checkDefinitions(t: Test, cluster: Cluster): Promise<void> {
  await cluster.createNamespace('shop');
  async function createDryRun(object: object, path: string, fieldValidation: string): Promise<string> {
    const query = { dryRun: 'All', fieldValidation };
    return cluster.post(path, object, query).then(
      () => 'accepted',
      (error: unknown) => String(error),
    );
  }
  for (const { about, object, refused } of [...objectCases, ...rolloutCases]) {
    const path = await cluster.pathOf(object);
    // An accepted object has no unknown field.
    const result = await createDryRun(object, path, refused ? 'Ignore' : 'Strict');
    if (refused) like(t, result, refused, `${object.kind}: ${about}`);
    else t.equal(result, 'accepted', `${object.kind}: ${about}`);
  }

  for (const name of ['custom-resources', 'rollout']) {
    const example = new URL(`../../../../examples/${name}.yaml`, import.meta.url);
    await cluster.applyYaml(await readFile(example, 'utf8'));
  }
  await cluster.create({ ...podConfig({ labelSelector: { matchLabels: { app: 'web' } } }) });
  const path = `${group}/namespaces/shop/podplacementconfigs/web`;
  const made = await cluster.get<KubeObject & { readonly spec?: unknown }>(path);
  like(t, made.spec, { priority: 0 }, 'the default');

  const rollout = `${group}/namespaces/shop/architecturerollouts/web`;
  const moved = cluster.merge(rollout, { spec: { architecture: 's390x' } });
  await t.rejects(moved, { message: /the architecture of a rollout cannot be changed/ });
  await cluster.merge(rollout, { spec: { architecture: 'arm64', steps: ['100%'] } });
}
