/**
 * Groups of pods on one architecture, whichever it is, by required pod affinity (docs/use/placement.md), with
 * the real scheduler: the first pod that is scheduled chooses for its group.
 */
import t from 'tap';
import type { RolloutStatus } from '../../../src/controller/features/rollouts/status.ts';
import type { KubeObject, PodSpec } from '../../../src/kube/api/objects.ts';
import { podConfig } from '../../policy/resources/objects.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { isGated, nodeOf, podOf, podPath, podsOf, workload, type PodNow } from './control-plane/pods.ts';
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
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
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

  await t.test('a first pod that has no choice decides against the preference of the others', async (t) => {
    await create('bound', 'driver', amdOnly);
    t.equal(await architectureOf('bound', 'driver'), 'amd64');
    await Promise.all(names.slice(1).map((name) => create('bound', name, both)));
    t.strictSame(await architecturesOf('bound'), all('amd64'));
  });

  await t.test('a first pod that has a choice can exclude the others, which stay pending', async (t) => {
    await create('apart', 'driver', both);
    t.equal(await architectureOf('apart', 'driver'), preferred);
    await create('apart', 'executor-1', amdOnly);
    const pending = await pods.until('it cannot be scheduled', (now) => {
      const found = now.get('default/apart-executor-1');
      return found?.status?.conditions?.find(({ reason }) => reason === 'Unschedulable');
    });
    t.match(pending.message, /pod affinity rules/);
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

  await t.test('a rollout leaves such a workload where it is, and says so', async (t) => {
    const labels = { group: 'rolled' };
    const deployment = workload(
      'Deployment',
      'rolled',
      { image: amdOnly },
      {
        replicas: 1,
        labels,
        pod: inGroup('rolled'),
      },
    );
    await cluster.create(deployment);
    await pods.until('the first pod runs', (now) => podsOf(now.values(), 'rolled')[0]?.spec.nodeName);
    const path = '/apis/apps/v1/namespaces/default/deployments/rolled';
    const spec = { architecture: 'arm64', names: ['rolled'], steps: ['100%'] };
    await cluster.make('ArchitectureRollout', 'default/rolled', { spec });
    const rollout = '/apis/arch.example/v1alpha1/namespaces/default/architecturerollouts/rolled';
    type Rollout = KubeObject & { readonly status?: RolloutStatus };
    const found = await cluster.waitFor<Rollout>(rollout, (now) => now?.status?.phase === 'Waiting');
    t.match(found?.status?.workloads[0]?.blocked, /one architecture, by their pod affinity/);
    await cluster.merge(path, {
      spec: { replicas: 4, template: { spec: { containers: [{ name: 'app', image: both }] } } },
    });
    const isThere = (pod: PodNow): boolean =>
      pod.spec.containers[0]?.image === both && pod.spec.nodeName !== undefined;
    const moved = await pods.until('the new pods are scheduled', (now) => {
      const fresh = podsOf(now.values(), 'rolled').filter(isThere);
      return fresh.length === 4 && fresh;
    });
    t.strictSame([...new Set(moved.map((pod) => pod.spec.nodeName?.split('-')[0]))], ['amd64']);
  });
  await cluster.delete(podPath('apart-executor-1'));
});
