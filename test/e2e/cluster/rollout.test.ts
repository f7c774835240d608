/**
 * Rollouts on a real control plane: three webhooks behind one address, dying leaders, an HPA, and kwok pods
 * that fail on arm64 or become ready late. Measures the share's error, the time to roll back, remaining pods.
 */
import { connect, createServer } from 'node:net';
import t, { type Test } from 'tap';
import type { RolloutStatus } from '../../../src/controller/features/rollouts/status.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { podConfig } from '../../policy/resources/objects.ts';
import { listen } from '../../support/listen.ts';
import { archIn, requiring, termOf } from '../../support/placement-input.ts';
import {
  configureWebhook,
  metricOf,
  prepareArchwright,
  startAgent,
  startController,
  startWebhook,
  type Server,
} from './archwright/archwright.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { failingPods, failures } from './control-plane/failing-pods.ts';
import { createKillableControllers } from './faults/killable-controllers.ts';
import { startCluster, type Cluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import {
  budgetOf,
  cordon,
  isGated,
  isGoing,
  isOn,
  podPath,
  podsOf,
  workload,
  type PodNow,
} from './control-plane/pods.ts';
import { leaderOf, shortLease } from './archwright/start.ts';
import { hasCondition, type Watched } from './control-plane/watch.ts';

type Rollout = KubeObject & { readonly status?: RolloutStatus };

const group = '/apis/arch.example/v1alpha1/namespaces/default/architecturerollouts';
const arm = ['arm64-0', 'arm64-1'];

/** Each connection goes to the next webhook, as through a Service. */
async function startBalancer(t: Test, servers: readonly Server[]): Promise<string> {
  let next = 0;
  const balancer = createServer((socket) => {
    const { port } = new URL(servers[next % servers.length]?.url ?? '');
    next += 1;
    const upstream = connect(Number(port), '127.0.0.1');
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  t.teardown(() => void balancer.close());
  return `https://127.0.0.1:${await listen(balancer)}`;
}

const livePods = (pods: Watched<PodNow>, app: string): PodNow[] =>
  podsOf(pods.objects.values(), app).filter((pod) => !isGoing(pod));
const onArm = (pods: readonly PodNow[]): number => pods.filter((pod) => isOn(pod, 'arm64')).length;
const areSettled = (pods: readonly PodNow[], count: number): boolean =>
  pods.length === count && pods.every((pod) => hasCondition(pod, 'Ready'));

async function deploy(
  cluster: Cluster,
  name: string,
  image: string,
  replicas: number,
  more: { readonly labels?: Readonly<Record<string, string>>; readonly pod?: object } = {},
) {
  await cluster.create(workload('Deployment', name, { image }, { replicas, ...more }));
}

/** A StatefulSet with volumes in these zones, by ordinal. */
async function deployZonal(cluster: Cluster, name: string, image: string, zones: readonly string[]) {
  const storage = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
  const wanted = { ...storage, resources: { requests: { storage: '1Gi' } } };
  for (const [index, zone] of zones.entries()) {
    const claim = `data-${name}-${index}`;
    const matchExpressions = [{ key: 'zone', operator: 'In', values: [zone] }];
    await cluster.make('PersistentVolume', claim, {
      spec: {
        ...storage,
        capacity: { storage: '1Gi' },
        hostPath: { path: '/data' },
        claimRef: { namespace: 'default', name: claim },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      },
    });
    await cluster.make('PersistentVolumeClaim', claim, { spec: { ...wanted, volumeName: claim } });
  }
  const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: wanted }];
  const more = { replicas: zones.length, serviceName: name, volumeClaimTemplates };
  await cluster.create(workload('StatefulSet', name, { image }, more));
}

async function rollOut(cluster: Cluster, name: string, spec: object): Promise<void> {
  const all = { architecture: 'arm64', names: [name], ...spec };
  await cluster.make('ArchitectureRollout', `default/${name}`, { spec: all });
}

void t.test('rollouts keep their share, roll back, and survive dying leaders', async (t) => {
  const cluster = await startCluster(
    { nodes: { amd64: 2, arm64: 2 }, schedulerQps: 500, stages: failingPods(arm) },
    t,
  );
  await installDefinitions(cluster);
  const images = await startImages(cluster);
  const image = images.push('shop/web', ['amd64', 'arm64']);
  const amdOnly = images.push('shop/amd', ['amd64']);
  const tls = await prepareArchwright(cluster);
  const agents = [
    await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } }),
  ];
  const webhooks: Server[] = [];
  for (const name of ['webhook-a', 'webhook-b', 'webhook-c'])
    webhooks.push(await startWebhook(cluster, { tls, agents, name }));
  const [first] = webhooks;
  if (!first) throw new Error('no webhook');
  const url = await startBalancer(t, webhooks);
  await configureWebhook(cluster, { tls, webhook: { ...first, url } });
  const killable = createKillableControllers(t, cluster.directory, (options) =>
    startController(cluster, {
      tls,
      agents,
      ...options,
      env: { HOSTNAME: options.name ?? '', ...options.env },
      tuning: { ...shortLease, ...options.tuning },
    }),
  );
  let controller = await killable.live('first');
  await leaderOf(cluster.client, (name) => name === 'first');
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  const rollouts = await cluster.watch<Rollout>(group, t);
  const phase = (name: string, wanted: string, ms = 60_000): Promise<Rollout> =>
    rollouts.until(
      `${name} is ${wanted}`,
      (all) => {
        const found = all.get(`default/${name}`);
        return found?.status?.phase === wanted && found;
      },
      ms,
    );

  await cordon(cluster, arm, true);
  for (const [node, zone] of Object.entries({
    'amd64-0': 'a',
    'amd64-1': 'b',
    'arm64-0': 'a',
    'arm64-1': 'a',
  }))
    await cluster.merge(`/api/v1/nodes/${node}`, { metadata: { labels: { zone } } });
  await deploy(cluster, 'web', image, 20);
  await deploy(cluster, 'pinned', amdOnly, 2);
  for (const app of failures) await deploy(cluster, app, image, 12, { labels: { 'e2e-fails': app } });
  const pod = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
  await deploy(cluster, 'chart', image, 8, { pod });
  await deploy(cluster, 'terms', image, 8, { pod: requiring(termOf(archIn('amd64'))) });
  await deploy(cluster, 'kept', image, 2, { pod });
  await deploy(cluster, 'broken', image, 6);
  await deployZonal(cluster, 'db', image, ['b', 'a']);
  await deploy(cluster, 'moved', image, 8);
  await pods.until(
    'all run on amd64',
    () =>
      areSettled(livePods(pods, 'web'), 20) &&
      failures.every((app) => areSettled(livePods(pods, app), 12)) &&
      areSettled(livePods(pods, 'broken'), 6) &&
      areSettled(livePods(pods, 'db'), 2) &&
      ['moved', 'chart', 'terms'].every((app) => areSettled(livePods(pods, app), 8)),
    120_000,
  );
  await cordon(cluster, arm, false);
  const selector = { matchExpressions: [{ key: 'app', operator: 'In', values: ['chart', 'terms'] }] };
  await cluster.create(podConfig({ labelSelector: selector, constraints: 'widen' }, 'chart', 'default'));

  /** Waits until a workload has these pods, all ready. @returns pods between actual and wanted share */
  async function errorAt(app: string, count: number, percent: number): Promise<number> {
    await pods.until(`${count} pods of ${app}`, () => areSettled(livePods(pods, app), count), 120_000);
    return Math.abs(onArm(livePods(pods, app)) - (percent * count) / 100);
  }
  const within = (t: Test, error: number, count: number, about: string): void => {
    t.ok(error <= Math.max(1, 0.05 * count), `${about}: ${error} of ${count} pods off the share`);
    t.comment(`share error: ${about}: ${error} of ${count} pods`);
  };

  const steady = Promise.withResolvers<undefined>();
  t.jobs = 8;
  const parallelTests: Promise<unknown>[] = [];
  const parallel = (about: string, check: (t: Test) => Promise<void>): void => {
    parallelTests.push(t.test(about, { buffered: true }, check));
  };
  parallel('an HPA and a rolling update keep the share while leaders die', async (t) => {
    try {
      const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
      const hpa = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
      await cluster.post(hpa, {
        metadata: { name: 'web' },
        spec: { scaleTargetRef: target, minReplicas: 20, maxReplicas: 20 },
      });
      /** The HPA has no metrics, but it keeps the replicas within its bounds. */
      const scale = (replicas: number): Promise<unknown> =>
        cluster.merge(`${hpa}/web`, { spec: { minReplicas: replicas, maxReplicas: replicas } });
      await rollOut(cluster, 'web', { steps: ['25%'], pause: '10m' });
      await phase('web', 'Progressing');
      await scale(40);
      within(t, await errorAt('web', 40, 25), 40, 'scaled from 20 to 40');

      await controller.process.stop();
      await killable.kill('rollouts/status-written', {
        meanwhile: async (name) => {
          await leaderOf(cluster.client, (now) => now === name);
          const annotations = { restarted: 'once' };
          await cluster.merge('/apis/apps/v1/namespaces/default/deployments/web', {
            spec: { template: { metadata: { annotations } } },
          });
        },
      });
      controller = await killable.live('second');
      await leaderOf(cluster.client, (name) => name === 'second');
      steady.resolve(undefined);
      const isNew = ({ metadata }: PodNow): boolean => metadata?.annotations?.['restarted'] === 'once';
      await pods.until('all are new', () => livePods(pods, 'web').every(isNew), 180_000);
      within(t, await errorAt('web', 40, 25), 40, 'a rolling update');

      await cluster.merge(`${group}/web`, { spec: { steps: ['50%'] } });
      await rollouts.until('the next share', (all) => all.get('default/web')?.status?.share === '50%');
      await scale(80);
      within(t, await errorAt('web', 80, 50), 80, 'another share, and scaled to 80');
      const hasOrder = ({ metadata }: PodNow): boolean =>
        metadata?.annotations?.['controller.kubernetes.io/pod-deletion-cost'] !== undefined;
      await pods.until('all have a deletion cost', () => livePods(pods, 'web').every(hasOrder));
      await scale(30);
      within(t, await errorAt('web', 30, 50), 30, 'scaled down to 30');
      await scale(60);
      within(t, await errorAt('web', 60, 50), 60, 'scaled down to 30 and up to 60');
      const counts = await Promise.all(webhooks.map((each) => metricOf(each, 'archwright_admissions_total')));
      t.comment(`admissions by webhook: ${counts.join(', ')}`);
      t.ok(
        counts.every((count) => count > 0),
        'all three webhooks got requests',
      );
      await cluster.delete(`${hpa}/web`);
    } finally {
      steady.resolve(undefined);
    }
  });

  // The others follow one leader.
  const parallelWhenSteady = (about: string, check: (t: Test) => Promise<void>): void =>
    parallel(about, async (t) => {
      await steady.promise;
      await check(t);
    });

  parallelWhenSteady('a workload that cannot move is reported, and nothing waits', async (t) => {
    await rollOut(cluster, 'pinned', {});
    await rollOut(cluster, 'kept', {});
    const { status } = await phase('pinned', 'Waiting');
    t.match(status?.workloads, [{ name: 'Deployment/pinned', blocked: /no arm64$/ }]);
    const kept = await phase('kept', 'Waiting');
    t.match(kept.status?.workloads, [{ name: 'Deployment/kept', blocked: /constrain the architecture/ }]);
  });

  for (const app of ['chart', 'terms'])
    parallelWhenSteady(
      `with constraints: widen, pods that name amd64 follow the share: ${app}`,
      async (t) => {
        await rollOut(cluster, app, { steps: ['50%'] });
        const { status } = await phase(app, 'Progressing');
        t.match(status?.workloads, [{ name: `Deployment/${app}`, wanted: 4 }]);
        await cluster.merge(`/apis/apps/v1/namespaces/default/deployments/${app}`, {
          spec: { replicas: 24 },
        });
        within(t, await errorAt(app, 24, 50), 24, 'pods that name amd64');
        t.notOk(livePods(pods, app).some(isGated), 'no pod is stuck');
      },
    );

  parallelWhenSteady('pods of a StatefulSet move only to the zone of their volumes', async (t) => {
    await rollOut(cluster, 'db', { steps: ['50%', '100%'], pause: '1s', rebalance: true });
    const { status } = await phase('db', 'Complete', 120_000);
    t.match(status?.workloads, [{ name: 'StatefulSet/db', pods: 2, moved: 1, wanted: 1 }]);
    await pods.until('both are ready', () => areSettled(livePods(pods, 'db'), 2));
    const there = livePods(pods, 'db').filter((each) => isOn(each, 'arm64'));
    t.same(
      there.map(({ metadata }) => metadata?.name),
      ['db-1'],
    );
  });

  /** Time until a pod counts as bad, its message, and enough replicas on amd64 to compare times. */
  const limits = {
    crash: [0, {}, /restarted 2 times/, 18],
    unready: [10_000, { readyWithin: '10s' }, /is not ready for/, 18],
    slow: [30_000, {}, /is not ready for/, 30],
  } as const;
  for (const app of failures)
    parallelWhenSteady(`${app} fails on arm64 and is rolled back to 0%`, async (t) => {
      const [limitMs, unhealthy, message, replicas] = limits[app];
      const isBad = (pod: PodNow): boolean => isOn(pod, 'arm64') && !hasCondition(pod, 'Ready');
      const bad = new Map<string, number>();
      pods.onChange(({ object, at }) => {
        const { uid = '', labels } = object.metadata ?? {};
        const hasRun = object.status?.phase === 'Running';
        if (labels?.['app'] === app && hasRun && isBad(object) && !bad.has(uid)) bad.set(uid, at);
      });
      await budgetOf(cluster, app, 8);
      await rollOut(cluster, app, { steps: ['50%'], unhealthy });
      await phase(app, 'Progressing');
      await cluster.merge(`/apis/apps/v1/namespaces/default/deployments/${app}`, { spec: { replicas } });
      await pods.until('three are bad', () => bad.size >= 3, 60_000);
      const third = [...bad.values()].sort((a, b) => a - b)[2] ?? 0;
      const { status } = await phase(app, 'RolledBack');
      t.match(status?.message, message);
      const seconds = (performance.now() - third - limitMs) / 1000;
      t.ok(seconds < 30, `rolled back ${seconds.toFixed(1)} s after the third bad pod`);
      t.comment(`${app}: rolled back ${seconds.toFixed(1)} s after the third bad pod: ${status?.message}`);
      await pods.until(
        'all are back',
        () => areSettled(livePods(pods, app), replicas) && onArm(livePods(pods, app)) === 0,
        120_000,
      );
      t.comment(`${app}: all pods are ready ${((performance.now() - third) / 1000).toFixed(1)} s after it`);
      t.notOk(livePods(pods, app).some(isGated), 'no pod is stuck');
    });

  parallelWhenSteady('rebalance moves running pods within their budget', async (t) => {
    await budgetOf(cluster, 'moved', 7);
    let fewest = 8;
    pods.onChange(() => {
      const ready = livePods(pods, 'moved').filter((pod) => hasCondition(pod, 'Ready')).length;
      fewest = Math.min(fewest, ready);
    });
    await rollOut(cluster, 'moved', { steps: ['50%'], pause: '1s', rebalance: true });
    await phase('moved', 'Complete', 120_000);
    const isHalf = (): boolean =>
      areSettled(livePods(pods, 'moved'), 8) && onArm(livePods(pods, 'moved')) === 4;
    await pods.until('half of them are moved', isHalf, 120_000);
    t.equal(fewest, 7, 'one at a time');
  });
  await Promise.all(parallelTests);

  await t.test('an exec format error rolls back at the first pod, even if the leader dies', async (t) => {
    await controller.process.stop();
    await killable.kill('rollouts/before-eviction', {
      meanwhile: async (name) => {
        await leaderOf(cluster.client, (now) => now === name);
        await rollOut(cluster, 'broken', { steps: ['50%'] });
        await phase('broken', 'Progressing');
        await cluster.merge('/apis/apps/v1/namespaces/default/deployments/broken', {
          spec: { replicas: 12 },
        });
        await pods.until('they run', () => areSettled(livePods(pods, 'broken'), 12), 60_000);
        const failing = livePods(pods, 'broken').find((pod) => isOn(pod, 'arm64'));
        const terminated = { exitCode: 255, reason: 'Error', message: 'exec /app: exec format error' };
        const container = {
          name: 'app',
          image,
          imageID: `app@sha256:${'a'.repeat(64)}`,
          ready: false,
          restartCount: 0,
          state: { terminated },
        };
        const status = { conditions: [{ type: 'Ready', status: 'False' }], containerStatuses: [container] };
        await cluster.patch(`${podPath(failing?.metadata?.name ?? '')}/status`, {
          type: 'strategic',
          body: { status },
        });
      },
    });
    const { status } = await phase('broken', 'RolledBack');
    t.match(status?.message, /not built for the CPU/);
    t.ok(onArm(livePods(pods, 'broken')) > 0, 'the leader died before it moved them');
    controller = await killable.live('third');
    await pods.until(
      'all are back',
      () => areSettled(livePods(pods, 'broken'), 12) && onArm(livePods(pods, 'broken')) === 0,
      120_000,
    );
  });

  await t.test('deleting a rollout does not change pods', async (t) => {
    const before = livePods(pods, 'web').map(({ metadata }) => metadata?.uid);
    for (const { metadata } of rollouts.objects.values()) await cluster.delete(`${group}/${metadata?.name}`);
    await rollouts.until('they are gone', (all) => all.size === 0);
    t.same(
      livePods(pods, 'web').map(({ metadata }) => metadata?.uid),
      before,
    );
    t.notOk([...pods.objects.values()].some(isGated), 'no pod is gated');
  });

  killable.expectKilledAtEach('rollouts');
  await controller.process.stop();
});
