/** Controllers are killed while they reconcile custom resources and evict pods (once per leader, within budget). */
import t from 'tap';
import type { ResourceStatus } from '../../../src/controller/write/conditions.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { clusterConfigsPath } from '../../../src/policy/resources/placement.ts';
import { clusterConfig } from '../../policy/resources/objects.ts';
import { type Settings } from './archwright/archwright.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { type PodGroupSetup } from './faults/pod-group.ts';
import {
  budgetOf,
  podOf,
  waitForEvent,
  workload,
  type EventNow,
  type PodNow,
  cordon,
  crash,
  isGoing,
  podsOf,
  settledOn,
} from './control-plane/pods.ts';
import { startFaultTest, type FaultTest } from './faults/setup.ts';
import { createKillableControllers } from './faults/killable-controllers.ts';
import { type Watched } from './control-plane/watch.ts';

type Resource = KubeObject & { readonly status?: ResourceStatus };

/** The webhook skips this namespace, so successors land on the nodes of their predecessors. */
const excluded = 'aside';
const replicas = { stubborn: 2, web: 3, kept: 2 };
const clusterPath = clusterConfigsPath('cluster');
const settings: Settings = { 'misplaced-pods-share': '100', 'evictions-per-minute': '600' };

/** Pods of an amd64 image run on arm64 and crash. */
async function misplace(
  { cluster, images }: Omit<PodGroupSetup, 'pods'>,
  pods: Watched<PodNow>,
): Promise<void> {
  const image = images.push('shop/web', ['amd64']);
  const elsewhere = ['amd64-0', 's390x-0'];
  // They leave no room for pods that request more than half of a node.
  for (const name of elsewhere) {
    const containers = [{ name: 'app', image, resources: { requests: { cpu: '40' } } }];
    const nodeSelector = { 'kubernetes.io/hostname': name };
    await cluster.create(podOf(`fills-${name}`, image, { nodeSelector, containers }));
  }
  await pods.until('two nodes are half full', (objects) =>
    elsewhere.every((name) => objects.get(`default/fills-${name}`)?.spec.nodeName === name),
  );
  await cordon(cluster, elsewhere, true);
  await cluster.createNamespace(excluded);
  const large = { image, resources: { requests: { cpu: '30' } } };
  const stubborn = { namespace: excluded, replicas: replicas.stubborn };
  await cluster.create(workload('Deployment', 'stubborn', large, stubborn));
  for (const app of ['web', 'kept'] as const)
    await cluster.create(workload('Deployment', app, { image }, { replicas: replicas[app] }));
  await budgetOf(cluster, 'kept', replicas.kept);
  for (const [app, count] of Object.entries(replicas))
    for (const pod of await settledOn(pods, app, 'arm64', count)) await crash(cluster, pod);
  await cordon(cluster, elsewhere, false);
}

async function excludeNamespace({ cluster }: FaultTest): Promise<void> {
  const path = '/webhooks/0/namespaceSelector/matchExpressions/0/values/-';
  await cluster.patch('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright', {
    type: 'json',
    body: [{ op: 'add', path, value: excluded }],
  });
}

void t.test(
  'evictions and custom resources are completed when a controller is killed at each step',
  async (t) => {
    let everywhere: Watched<PodNow> | undefined;
    const faultTest = await startFaultTest(t, {
      secondAgent: true,
      before: async (podGroupSetup) => {
        const watched = await podGroupSetup.cluster.watch<PodNow>('/api/v1/pods', t);
        everywhere = watched;
        await misplace(podGroupSetup, watched);
        await installDefinitions(podGroupSetup.cluster);
      },
    });
    if (everywhere === undefined) throw new TypeError('no pods');
    const pods = everywhere;
    const { cluster } = faultTest;
    await excludeNamespace(faultTest);
    const events = await cluster.watch<EventNow>('/api/v1/events', t);
    const first = new Set([...pods.objects.values()].map(({ metadata }) => metadata?.uid));
    const isFirst = ({ metadata }: PodNow): boolean => first.has(metadata?.uid);
    /** Uids of each workload's pods, and of those that went. */
    const seen = new Map(Object.keys(replicas).map((app) => [app, new Set<string>()]));
    const gone = new Map(Object.keys(replicas).map((app) => [app, new Set<string>()]));
    const record = (pod: PodNow, isOver = isGoing(pod)): void => {
      const app = pod.metadata?.labels?.['app'] ?? '';
      seen.get(app)?.add(pod.metadata?.uid ?? '');
      if (isOver) gone.get(app)?.add(pod.metadata?.uid ?? '');
    };
    for (const pod of pods.objects.values()) record(pod);
    pods.onChange(({ type, object }) => record(object, type === 'DELETED' || isGoing(object)));
    const crashed = new Set<string>();
    pods.onChange(({ object }) => {
      const { labels, uid = '' } = object.metadata ?? {};
      if (labels?.['app'] !== 'stubborn' || isFirst(object) || object.status?.phase !== 'Running') return;
      if (crashed.has(uid) || isGoing(object)) return;
      crashed.add(uid);
      crash(cluster, object).catch((error: unknown) => t.fail(String(error)));
    });
    const resource = (isIt: (now: Resource | undefined) => boolean): Promise<Resource | undefined> =>
      cluster.waitFor<Resource>(clusterPath, isIt, 60_000);
    const podGroup = async (name: string, leader: string): Promise<void> => {
      await faultTest.leader((now) => now === leader);
      await faultTest.placesPods({ name, count: 20 });
    };
    const killable = createKillableControllers(t, cluster.directory, (options) =>
      faultTest.controller(options),
    );

    await cluster.create(clusterConfig({ preferredArchitecture: 'arm64' }));
    await killable.kill('resources/status-written');
    t.equal((await resource((now) => now?.status !== undefined))?.status?.observedGeneration, 1);
    const body = { spec: { preferredArchitecture: 'amd64' } };
    await cluster.merge(clusterPath, body);

    await killable.kill('misplaced/evicted', { settings, meanwhile: (name) => podGroup('evicted', name) });
    await pods.until('one is on its way', () => gone.get('stubborn')?.size === 1);

    const last = await killable.live('last', { settings });
    await resource((now) => now?.status?.observedGeneration === 2);
    await settledOn(pods, 'web', 'amd64', replicas.web);
    await waitForEvent(events, 'MisplacedPodEvicted', ['Pod', /^web-/], 90_000);
    await waitForEvent(events, 'MisplacedPodEvicted', ['Deployment', /^web$/], 90_000);
    await waitForEvent(events, 'MisplacedPodHeld', ['Pod', /^kept-/], 90_000);
    await waitForEvent(events, 'MisplacedPodAgain', ['Deployment', /^stubborn$/], 90_000);
    await podGroup('last', 'last');
    for (const [app, count] of Object.entries({ web: replicas.web, kept: replicas.kept })) {
      const evicted = app === 'kept' ? 0 : count;
      t.equal(gone.get(app)?.size, evicted, `${app}: number of evictions`);
      t.equal(seen.get(app)?.size, count + evicted, `${app}: number of replacements`);
    }
    const stubborn = gone.get('stubborn')?.size ?? 0;
    t.ok(stubborn >= replicas.stubborn && stubborn <= 2 * replicas.stubborn, `${stubborn}: once per leader`);
    for (const [app, count] of Object.entries(replicas))
      t.equal(podsOf(pods.objects.values(), app).length, count, `${app}: no pod is lost`);
    killable.expectKilledAtEach('resources', 'misplaced');
    await last.process.stop();
    await faultTest.clean();
  },
);
