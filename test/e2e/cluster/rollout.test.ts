/**
 * Rollouts on a real control plane: three webhooks behind one address, and dying leaders. Measures the share's
 * error. Random rollouts are in `test/controller/features/rollouts/model.test.ts`.
 */
import { connect, createServer } from 'node:net';
import t, { type Test } from 'tap';
import type { RolloutStatus } from '../../../src/controller/features/rollouts/status.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { listen } from '../../support/listen.ts';
import { metricOf, startController, startWebhook, type Server } from './archwright/archwright.ts';
import { leaderOf, shortLease, startAdmission } from './archwright/start.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { cordon, isGoing, isOn, podPath, podsOf, workload, type PodNow } from './control-plane/pods.ts';
import { hasCondition } from './control-plane/watch.ts';
import { startCluster } from './harness.ts';

type Rollout = KubeObject & { readonly status?: RolloutStatus };

const group = '/apis/arch.example/v1alpha1/namespaces/default/architecturerollouts';
const arm = ['arm64-0', 'arm64-1'];
const patienceMs = 120_000;

/** Each connection goes to the next webhook, as through a Service. */
async function startBalancer(t: Test, servers: readonly Server[]): Promise<string> {
  let next = 0;
  const balancer = createServer((socket) => {
    const { port } = new URL(servers[next++ % servers.length]?.url ?? '');
    const upstream = connect(Number(port), '127.0.0.1');
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  t.teardown(() => void balancer.close());
  return `https://127.0.0.1:${await listen(balancer)}/mutate`;
}

const onArm = (pods: readonly PodNow[]): number => pods.filter((pod) => isOn(pod, 'arm64')).length;

void t.test('rollouts keep their share, roll back, and survive dying leaders', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2, arm64: 2 }, schedulerQps: 500 }, t);
  await installDefinitions(cluster);
  const { images, tls, agents, webhook } = await startAdmission(cluster);
  const image = images.push('shop/web', ['amd64', 'arm64']);
  const webhooks = [webhook];
  for (const name of ['webhook-b', 'webhook-c'])
    webhooks.push(await startWebhook(cluster, { tls, agents, name }));
  const value = await startBalancer(t, webhooks);
  await cluster.patch(paths.mutatingWebhookConfigurations('archwright'), {
    type: 'json',
    body: [{ op: 'replace', path: '/webhooks/0/clientConfig/url', value }],
  });
  const start = async (name: string, env = {}, mayEnd = false): Promise<Server> => {
    const options = { tls, agents, name, env: { HOSTNAME: name, ...env }, tuning: shortLease, mayEnd };
    const controller = await startController(cluster, options);
    await leaderOf(cluster.client, (now) => now === name);
    return controller;
  };
  let controller = await start('first');
  /** Another controller leads, and dies at this step. @param lead runs while it leads */
  const killAt = async (t: Test, name: string, step: string, lead: () => Promise<void>): Promise<void> => {
    await controller.process.stop();
    const { process } = await start(name, { KILL_AT: step }, true);
    await lead();
    t.equal(await process.ended, 'SIGKILL', `killed at ${step}`);
  };
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  const live = (app: string): PodNow[] => podsOf(pods.objects.values(), app).filter((pod) => !isGoing(pod));
  const areReady = (app: string, count: number): boolean =>
    live(app).length === count && live(app).every((pod) => hasCondition(pod, 'Ready'));
  const rollouts = await cluster.watch<Rollout>(group, t);
  const phase = (name: string, wanted: string): Promise<Rollout> =>
    rollouts.until(`${name} is ${wanted}`, (all) => {
      const found = all.get(`default/${name}`);
      return found?.status?.phase === wanted && found;
    });
  const rollOut = (name: string, spec: object): Promise<unknown> =>
    cluster.make('ArchitectureRollout', `default/${name}`, {
      spec: { architecture: 'arm64', names: [name], ...spec },
    });
  const deployment = (name: string, spec: object): Promise<unknown> =>
    cluster.merge(`/apis/apps/v1/namespaces/default/deployments/${name}`, { spec });

  const counts = { web: 20, broken: 6 };
  await cordon(cluster, arm, true);
  for (const [name, replicas] of Object.entries(counts))
    await cluster.create(workload('Deployment', name, { image }, { replicas }));
  for (const [name, count] of Object.entries(counts))
    await pods.until(`${name} runs on amd64`, () => areReady(name, count), patienceMs);
  await cordon(cluster, arm, false);

  await t.test('scaling and a rolling update keep the share while leaders die', async (t) => {
    /** Waits until there are these pods, all ready. At most one or 5 % are off the share. */
    const keeps = async (count: number, percent: number, about: string): Promise<void> => {
      await pods.until(`${count} pods: ${about}`, () => areReady('web', count), patienceMs);
      const error = Math.abs(onArm(live('web')) - (percent * count) / 100);
      t.ok(error <= Math.max(1, 0.05 * count), `${about}: ${error} of ${count} pods off the share`);
      t.comment(`share error: ${about}: ${error} of ${count} pods`);
    };
    await rollOut('web', { steps: ['25%'], pause: '10m' });
    await phase('web', 'Progressing');
    await deployment('web', { replicas: 40 });
    await keeps(40, 25, 'scaled from 20 to 40');

    await killAt(t, 'dies-after-status', 'rollouts: after patch .*/status$', async () => {
      await deployment('web', { template: { metadata: { annotations: { restarted: 'once' } } } });
    });
    controller = await start('second');
    const isNew = ({ metadata }: PodNow): boolean => metadata?.annotations?.['restarted'] === 'once';
    await pods.until('all are new', () => live('web').every(isNew), 180_000);
    await keeps(40, 25, 'a rolling update');

    await cluster.merge(`${group}/web`, { spec: { steps: ['50%'] } });
    await rollouts.until('the next share', (all) => all.get('default/web')?.status?.share === '50%');
    await deployment('web', { replicas: 80 });
    await keeps(80, 50, 'another share, and scaled to 80');
    const hasOrder = ({ metadata }: PodNow): boolean =>
      metadata?.annotations?.['controller.kubernetes.io/pod-deletion-cost'] !== undefined;
    await pods.until('all have a deletion cost', () => live('web').every(hasOrder));
    await deployment('web', { replicas: 30 });
    await keeps(30, 50, 'scaled down to 30');
    const admissions = await Promise.all(
      webhooks.map((each) => metricOf(each, 'archwright_admissions_total')),
    );
    t.ok(Math.min(...admissions) > 0, `all three webhooks got requests: ${admissions.join(', ')}`);
  });

  await t.test('an exec format error rolls back at the first pod, even if the leader dies', async (t) => {
    await killAt(t, 'dies-before-eviction', 'rollouts: before eviction', async () => {
      await rollOut('broken', { steps: ['50%'] });
      await phase('broken', 'Progressing');
      await deployment('broken', { replicas: 12 });
      await pods.until('they run', () => areReady('broken', 12), patienceMs);
      const failing = live('broken').find((pod) => isOn(pod, 'arm64'));
      const terminated = { exitCode: 255, reason: 'Error', message: 'exec /app: exec format error' };
      const imageID = `app@sha256:${'a'.repeat(64)}`;
      const state = { terminated };
      const container = { name: 'app', image, imageID, ready: false, restartCount: 0, state };
      const status = { conditions: [{ type: 'Ready', status: 'False' }], containerStatuses: [container] };
      const path = `${podPath(failing?.metadata?.name ?? '')}/status`;
      await cluster.merge(path, { status });
    });
    const { status } = await phase('broken', 'RolledBack');
    t.match(status?.message, /not built for the CPU/);
    t.ok(onArm(live('broken')) > 0, 'the leader died before it moved them');
    controller = await start('third');
    const areBack = (): boolean => areReady('broken', 12) && onArm(live('broken')) === 0;
    await pods.until('all are back', areBack, patienceMs);
  });
});
