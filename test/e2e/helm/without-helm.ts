/** The plain manifests, by kubectl and kustomize: applied, reapplied, and removed as documented. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { createGated, expectNothingForbidden, expectSameAsBefore } from './leaving.ts';
import { steadyListing } from '../cluster/control-plane/listing.ts';
import type { Followed } from './logs.ts';
import { untilAgentsAnswer, untilReady, untilWebhooksInForce } from './parts.ts';
import { isGated, podPath } from '../cluster/control-plane/pods.ts';
import { deletePods, isPlaced, podOf, nodeArchitectureOf } from './pods.ts';
import { changedIn, kubectlOf, namespace, type Kubectl } from './release.ts';
import { step } from './report.ts';
import { realNode, type World } from './world.ts';

const deploy = fileURLToPath(new URL('../../../deploy', import.meta.url));
const directory = '/tmp/kustomize';
const overlay = join(directory, 'overlay');
/** As Argo CD and Flux do it, each with its own field manager. */
const gitops = ['--server-side', '--field-manager=gitops', '--force-conflicts'];
const placed = '{"op":"add","path":"/spec/template/spec/nodeSelector","value":';

export async function withoutHelm(world: World, logs: Followed): Promise<void> {
  const { cluster, image } = world;
  const kubectl = kubectlOf(cluster);
  const of = (name: string): string => `kubectl: ${name}`;
  // The manifests contain it.
  await kubectl(['delete', 'namespace', namespace, '--timeout=2m']);
  const before = await steadyListing(cluster);
  writeOverlay(world.own);

  await step(of('apply of a kustomization, until it is ready'), async () => {
    await kubectl(['apply', '-k', overlay]);
    await untilReady(cluster);
    await untilWebhooksInForce(cluster);
    await untilAgentsAnswer(cluster);
  });
  await step(of('pods are placed'), async () => {
    await cluster.create(podOf({ name: 'plain', images: [image('public/intel')] }));
    assert.equal(await nodeArchitectureOf(cluster, 'plain'), 'amd64');
    assert(isPlaced(await cluster.get<Pod>(podPath('plain'))));
  });
  await createGated(world, 'waits');

  await step(of('applying again changes nothing, and prunes nothing that archwright created'), async () => {
    const [found, objects] = [await written(kubectl), await contents(kubectl)];
    assert.deepEqual(changedIn(await kubectl(['apply', '-k', overlay])), []);
    await kubectl(['apply', '-k', overlay, '--prune', '-l', 'app.kubernetes.io/instance=archwright']);
    assert.deepEqual(await written(kubectl), found);
    assert.deepEqual(await contents(kubectl), objects);
  });
  await step(
    of('server-side apply, as by GitOps tools, changes nothing either, and shows no difference'),
    async () => {
      await kubectl(['apply', ...gitops, '-k', overlay]);
      const found = await written(kubectl);
      const objects = await contents(kubectl);
      assert(objects.length > 30, `${objects.length} objects`);
      await kubectl(['apply', ...gitops, '-k', overlay]);
      assert.deepEqual(await contents(kubectl), objects);
      // `kubectl diff` fails if there is a difference.
      assert.equal(await kubectl(['diff', ...gitops, '-k', overlay]), '');
      assert.deepEqual(await written(kubectl), found);
      await untilWebhooksInForce(cluster);
    },
  );

  await step(of('clean.yaml ungates pods, and deletes the objects of the controller'), async () => {
    await kubectl(['apply', '-f', '-'], cleaning(world.own));
    await kubectl([
      '-n',
      namespace,
      'wait',
      '--for=condition=complete',
      '--timeout=2m',
      'job/archwright-clean',
    ]);
    const open = await cluster.waitFor<Pod>(podPath('waits'), (pod) => !isGated(pod));
    assert(open !== undefined);
    assert.deepEqual(await written(kubectl), {});
  });
  await step(of('delete'), async () => {
    await kubectl(['delete', '-f', join(deploy, 'clean.yaml'), '--timeout=2m']);
    // The webhook configuration is gone already.
    await kubectl(['delete', '--ignore-not-found', '-k', overlay, '--timeout=2m']);
    await deletePods(cluster, ['plain', 'waits']);
  });
  await expectSameAsBefore(world, { name: 'kubectl' }, before);
  await step(of('no request was refused for a missing right'), () => expectNothingForbidden(logs));
}

/** A user's kustomization: another image, and the only node that can run it. */
function writeOverlay(own: World['own']): void {
  cpSync(deploy, join(directory, 'base'), { recursive: true });
  mkdirSync(overlay);
  const patch = JSON.stringify(`[${placed}${JSON.stringify(realNode)}}]`);
  writeFileSync(
    join(overlay, 'kustomization.yaml'),
    `resources: [../base]
images:
  - { name: ghcr.io/archwright/archwright, newName: '${own.registry}/${own.repository}', newTag: '${own.tag}' }
patches:
  - { target: { kind: Deployment }, patch: ${patch} }
  - { target: { kind: DaemonSet }, patch: ${patch} }
`,
  );
}

function cleaning(own: World['own']): string {
  const text = readFileSync(join(deploy, 'clean.yaml'), 'utf8').replaceAll(
    /ghcr\.io\/archwright\/archwright:\S+/g,
    `${own.registry}/${own.repository}:${own.tag}`,
  );
  const items = parseAllDocuments(text).map((document) => document.toJS() as Record<string, unknown>);
  for (const { kind, spec } of items) {
    if (kind !== 'Job') continue;
    const { template } = spec as { template: { spec: { nodeSelector?: object } } };
    template.spec.nodeSelector = realNode;
  }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

interface Listed {
  readonly items: readonly (KubeObject & {
    readonly status?: unknown;
    readonly metadata: {
      readonly managedFields?: readonly { readonly subresource?: string }[];
      readonly [field: string]: unknown;
    };
  })[];
}

/** Every object of the kustomization without its status and the version that comes with it. */
async function contents(kubectl: Kubectl): Promise<readonly object[]> {
  const { items } = JSON.parse(
    await kubectl(['get', '-k', overlay, '-o', 'json', '--show-managed-fields']),
  ) as Listed;
  return items.map(({ status: _status, metadata, ...rest }) => {
    const { resourceVersion: _version, managedFields = [], ...kept } = metadata;
    return {
      ...rest,
      metadata: {
        ...kept,
        managedFields: managedFields.filter(({ subresource }) => subresource !== 'status'),
      },
    };
  });
}

/** The controller's objects in its namespace, by name, with versions of those that should not change. */
async function written(kubectl: Kubectl): Promise<Readonly<Record<string, unknown>>> {
  const selector = 'app.kubernetes.io/managed-by=archwright-controller';
  const args = ['-n', namespace, 'get', 'secrets,configmaps', '-l', selector, '-o', 'json'];
  const { items } = JSON.parse(await kubectl(args)) as Listed;
  return Object.fromEntries(
    items.map(({ kind, metadata }) => [
      `${kind}/${String(metadata['name'])}`,
      [metadata['uid'], kind === 'Secret' ? metadata['resourceVersion'] : ''],
    ]),
  );
}
