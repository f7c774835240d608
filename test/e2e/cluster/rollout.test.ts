/**
 * Rollouts on a real control plane: three webhooks behind one address, dying leaders, an HPA. Measures the
 * share's error. Random rollouts are in `test/controller/features/rollouts/model.test.ts`.
 */
import { connect, createServer } from 'node:net';
import t, { type Test } from 'tap';
import type { RolloutStatus } from '../../../src/controller/features/rollouts/status.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { listen } from '../../support/listen.ts';
import {
  configureWebhook,
  metricOf,
  prepareArchwright,
  startAgent,
  startController,
  startWebhook,
  type ControllerOptions,
  type Server,
} from './archwright/archwright.ts';
import { installDefinitions } from './control-plane/definitions.ts';
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

async function deploy(cluster: Cluster, name: string, image: string, replicas: number) {
  await cluster.create(workload('Deployment', name, { image }, { replicas }));
}

async function rollOut(cluster: Cluster, name: string, spec: object): Promise<void> {
  const all = { architecture: 'arm64', names: [name], ...spec };
  await cluster.make('ArchitectureRollout', `default/${name}`, { spec: all });
}

void t.test('rollouts keep their share, roll back, and survive dying leaders', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 }, schedulerQps: 500 }, t);
  await installDefinitions(cluster);
  const images = await startImages(cluster);
  const image = images.push('shop/web', ['amd64', 'arm64']);
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
  const start = (name: string, { env, ...more }: Partial<ControllerOptions> = {}): Promise<Server> =>
    startController(cluster, {
      tls,
      agents,
      name,
      env: { HOSTNAME: name, ...env },
      tuning: shortLease,
      ...more,
    });
  /** Starts a controller that dies at this step, and waits until it has. @param lead runs while it leads */
  const killAt = async (t: Test, name: string, step: string, lead: () => Promise<void>): Promise<void> => {
    const { process } = await start(name, { env: { KILL_AT: step }, mayEnd: true });
    await leaderOf(cluster.client, (now) => now === name);
    await lead();
    t.equal(await process.ended, 'SIGKILL', `killed at ${step}`);
  };
  let controller = await start('first');
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
  await deploy(cluster, 'web', image, 20);
  await deploy(cluster, 'broken', image, 6);
  await deploy(cluster, 'moved', image, 8);
  await pods.until(
    'all run on amd64',
    () =>
      areSettled(livePods(pods, 'web'), 20) &&
      areSettled(livePods(pods, 'broken'), 6) &&
      areSettled(livePods(pods, 'moved'), 8),
    120_000,
  );
  await cordon(cluster, arm, false);
  /** Waits until a workload has these pods, all ready. @returns pods between actual and wanted share */
  async function errorAt(app: string, count: number, percent: number): Promise<number> {
    await pods.until(`${count} pods of ${app}`, () => areSettled(livePods(pods, app), count), 120_000);
    return Math.abs(onArm(livePods(pods, app)) - (percent * count) / 100);
  }
  const within = (t: Test, error: number, count: number, about: string): void => {
    t.ok(error <= Math.max(1, 0.05 * count), `${about}: ${error} of ${count} pods off the share`);
    t.comment(`share error: ${about}: ${error} of ${count} pods`);
  };

  await t.test('an HPA and a rolling update keep the share while leaders die', async (t) => {
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
    await killAt(t, 'dies-after-status', 'rollouts: after patch .*/status$', async () => {
      const annotations = { restarted: 'once' };
      await cluster.merge('/apis/apps/v1/namespaces/default/deployments/web', {
        spec: { template: { metadata: { annotations } } },
      });
    });
    controller = await start('second');
    await leaderOf(cluster.client, (name) => name === 'second');
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
  });

  await t.test('rebalance moves running pods within their budget', async (t) => {
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

  await t.test('an exec format error rolls back at the first pod, even if the leader dies', async (t) => {
    await controller.process.stop();
    await killAt(t, 'dies-before-eviction', 'rollouts: before eviction', async () => {
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
    });
    const { status } = await phase('broken', 'RolledBack');
    t.match(status?.message, /not built for the CPU/);
    t.ok(onArm(livePods(pods, 'broken')) > 0, 'the leader died before it moved them');
    controller = await start('third');
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

  await controller.process.stop();
});
