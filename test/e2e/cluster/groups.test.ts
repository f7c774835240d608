/**
 * Groups of pods on one architecture, whichever it is, by required pod affinity (docs/use/placement.md), with
 * the real scheduler: the first pod that is scheduled chooses for its group.
 */
import t from 'tap';
import type { KubeObject, PodSpec } from '../../../src/kube/api/objects.ts';
import { podConfig } from '../../policy/resources/objects.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { isGated, nodeOf, podOf, type PodNow } from './control-plane/pods.ts';
import { startCluster } from './harness.ts';
import { startArchwright } from './archwright/start.ts';

const preferred = 'arm64';
const names = ['driver', 'executor-1', 'executor-2', 'executor-3'];

/** The affinity of the documentation. */
function inGroup(group: string): Pick<PodSpec, 'affinity'> {
  const term = { labelSelector: { matchLabels: { group } }, topologyKey: 'kubernetes.io/arch' };
  return { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
}

void t.test('groups of pods run on one architecture', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 }, schedulerQps: 500 }, t);
  await installDefinitions(cluster);
  const settings = { 'preferred-architecture': preferred, 'on-unknown-image': 'gate' };
  const { images } = await startArchwright(cluster, { settings });
  const both = images.push('group/both', ['amd64', 'arm64']);
  const amdOnly = images.push('group/amd', ['amd64']);
  const create = (group: string, name: string, image: string): Promise<PodNow> =>
    cluster.create<PodNow>(podOf(`${group}-${name}`, image, inGroup(group), { labels: { group } }));
  const architectureOf = async (group: string, name: string): Promise<string> =>
    (await nodeOf(cluster, `${group}-${name}`)).split('-')[0] ?? '';
  const architecturesOf = (group: string): Promise<readonly string[]> =>
    Promise.all(names.map((name) => architectureOf(group, name)));
  const all = (architecture: string): readonly string[] => names.map(() => architecture);

  await t.test('the preference of the first pod decides for a group with equal images', async (t) => {
    await Promise.all(names.map((name) => create('equal', name, both)));
    t.strictSame(await architecturesOf('equal'), all(preferred));
  });

  await t.test('gated pods join their group', async (t) => {
    const path = (name: string): string => `group/late-${name}`;
    images.public.faults.add(/\/group\/late-/u, { kind: 'delay', ms: 2000 });
    const created = await Promise.all(
      names.map((name) => create('late', name, images.push(path(name), ['amd64', 'arm64']))),
    );
    t.ok(created.every(isGated), 'their images are unknown');
    const found = await architecturesOf('late');
    t.equal(new Set(found).size, 1, `all on ${found[0]}`);
  });

  await t.test(
    'a PodPlacementConfig with the common architectures keeps such a group together',
    async (t) => {
      const labelSelector = { matchLabels: { group: 'limited' } };
      await cluster.create(podConfig({ labelSelector, architectures: ['amd64'] }, 'limited', 'default'));
      const config = '/apis/arch.example/v1alpha1/namespaces/default/podplacementconfigs/limited';
      await cluster.waitFor<KubeObject & { readonly status?: object }>(
        config,
        (now) => now?.status !== undefined,
      );
      for (const name of names) await create('limited', name, name === 'driver' ? both : amdOnly);
      t.strictSame(await architecturesOf('limited'), all('amd64'));
    },
  );
});
