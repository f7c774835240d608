/**
 * Random rollouts of random workloads on a real control plane: scale, health, budgets and nodes change, and
 * people pause, resume and abort. None stalls in silence: each ends done, rolled back, aborted, paused by a
 * person, or waiting with a stated reason. `ROLLOUT_WALKS=200` chooses their number.
 */
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { RolloutStatus } from '../../../src/controller/features/rollouts/status.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { isHeld, outcomeOf, outcomes, type Outcome } from '../../controller/features/rollouts/outcome.ts';
import { createRandom, seedOfRun } from '../random.ts';
import { startArchwright } from './archwright/start.ts';
import { installDefinitions } from './control-plane/definitions.ts';
import { failingPods, failures } from './control-plane/failing-pods.ts';
import {
  budgetOf,
  cordon,
  isGated,
  isGoing,
  podPath,
  podsOf,
  workload,
  type PodNow,
} from './control-plane/pods.ts';
import type { Watched } from './control-plane/watch.ts';
import { startCluster, type Cluster } from './harness.ts';

type Rollout = KubeObject & {
  readonly spec?: { readonly paused?: boolean };
  readonly status?: RolloutStatus;
};

const walks = Number(process.env['ROLLOUT_WALKS'] ?? 10);
/** More pods would only make the control plane slow. */
const concurrency = 40;
const changes = 5;
/** Of every look at a rollout, of its steps, and of pods that must become ready. A loaded machine needs more. */
const settledMs = 180_000;
const arm = ['arm64-0', 'arm64-1'];
const group = '/apis/arch.example/v1alpha1/namespaces/default/architecturerollouts';
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const stepLists = [['10%', '50%', '100%'], ['50%'], [2, '100%'], ['100%'], ['25%', '75%']] as const;

interface World {
  readonly cluster: Cluster;
  readonly image: string;
  readonly pods: Watched<PodNow>;
  readonly rollouts: Watched<Rollout>;
}

/** @returns how it ends @throws Error if it stalls in silence */
async function walk({ cluster, image, pods, rollouts }: World, seed: number): Promise<Outcome> {
  const random = createRandom(seed);
  const name = `walk-${seed}`;
  const deployment = `/apis/apps/v1/namespaces/default/deployments/${name}`;
  const health = () => (random.chance(0.6) ? 'no' : random.pick(failures));
  const labels = { 'e2e-fails': health() };
  await cluster.create(workload('Deployment', name, { image }, { replicas: random.below(7), labels }));
  let isHeldByBudget = false;
  const set = (spec: object): Promise<unknown> => cluster.merge(`${group}/${name}`, { spec });
  const scale = (): Promise<unknown> => cluster.merge(deployment, { spec: { replicas: random.below(7) } });
  const all: readonly (() => Promise<unknown>)[] = [
    scale,
    scale,
    () =>
      cluster.merge(deployment, { spec: { template: { metadata: { labels: { 'e2e-fails': health() } } } } }),
    () => {
      isHeldByBudget = !isHeldByBudget;
      return isHeldByBudget ? budgetOf(cluster, name, 100) : cluster.delete(`${budgets}/${name}`);
    },
    () => {
      const some = podsOf(pods.objects.values(), name).filter((pod) => !isGoing(pod) && random.chance(0.5));
      return Promise.allSettled(some.map(({ metadata }) => cluster.delete(podPath(metadata?.name ?? ''))));
    },
    () => set({ paused: random.chance(0.3) }),
    () => set({ resumedAt: new Date().toISOString(), aborted: false }),
    () => set({ aborted: random.chance(0.3) }),
    () => set({ steps: random.pick(stepLists) }),
  ];
  await pause(random.below(4000));
  await cluster.make('ArchitectureRollout', `default/${name}`, {
    spec: {
      architecture: 'arm64',
      names: [name],
      steps: random.pick(stepLists),
      pause: random.pick(['0s', '2s']),
      unhealthy: { readyWithin: '5s' },
      rebalance: random.chance(0.5),
      ...(random.chance(0.3) && { retryAfter: '10s' }),
    },
  });
  for (let count = 0; count < changes; count += 1) {
    await pause(500 + random.below(2500));
    await random.pick(all)();
  }
  const { status: before } = await cluster.get<Rollout>(`${group}/${name}`);
  // What it says now may be about the last change.
  await pause(5000);
  return rollouts.until(
    `${name} does not stall`,
    (found) => {
      const { spec, status } = found.get(`default/${name}`) ?? {};
      const isMoving = status?.step !== before?.step || status?.attempt !== before?.attempt;
      return outcomeOf(status, spec?.paused === true, isHeld(status) || isMoving) ?? false;
    },
    settledMs,
  );
}

/** Nodes of the architecture go and come back. */
async function disturb(cluster: Cluster, signal: AbortSignal): Promise<void> {
  for (let isGone = true; !signal.aborted; isGone = !isGone) {
    await pause(6000, undefined, { signal }).catch(() => undefined);
    await cordon(cluster, arm, isGone && !signal.aborted);
  }
}

async function startWorld(t: Test): Promise<World> {
  const nodes = { amd64: 2, arm64: 2 };
  const cluster = await startCluster({ nodes, schedulerQps: 500, stages: failingPods(arm) }, t);
  await installDefinitions(cluster);
  const { images } = await startArchwright(cluster, {}, { 'evictions-per-minute': '6000' });
  return {
    cluster,
    image: images.push('shop/web', ['amd64', 'arm64']),
    pods: await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t),
    rollouts: await cluster.watch<Rollout>(group, t),
  };
}

const first = seedOfRun();

void t.test(`${walks} walks from seed ${first}`, async (t) => {
  const world = await startWorld(t);
  const ends = new Map<Outcome, number>(outcomes.map((outcome) => [outcome, 0]));
  const stop = new AbortController();
  const disturbing = disturb(world.cluster, stop.signal);
  for (let start = 0; start < walks; start += concurrency) {
    const seeds = Array.from(
      { length: Math.min(concurrency, walks - start) },
      (_, index) => first + start + index,
    );
    for (const [index, end] of (await Promise.allSettled(seeds.map((seed) => walk(world, seed)))).entries()) {
      t.equal(
        end.status,
        'fulfilled',
        end.status === 'rejected' ? `seed ${seeds[index]}: ${end.reason}` : '',
      );
      if (end.status === 'fulfilled') ends.set(end.value, (ends.get(end.value) ?? 0) + 1);
    }
    for (const seed of seeds) {
      await world.cluster.delete(`/apis/apps/v1/namespaces/default/deployments/walk-${seed}`);
      await world.cluster.delete(`${group}/walk-${seed}`);
    }
  }
  stop.abort();
  await disturbing;
  await world.pods.until('no pod is gated', (all) => ![...all.values()].some(isGated));
  t.comment(JSON.stringify(Object.fromEntries(ends)));
});
