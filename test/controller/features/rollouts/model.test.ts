/**
 * Random rollouts of random workloads never stall in silence: each ends done, rolled back, aborted, paused by a
 * person, or waiting with a stated reason. A rollback moves its pods back, and no others. `ROLLOUT_WALKS=10000` and
 * `ROLLOUT_SEED` choose the walks.
 */
import t from 'tap';
import type { RolloutStatus } from '../../../../src/controller/features/rollouts/status.ts';
import { rollout } from '../../../policy/resources/objects.ts';
import { sized } from '../../../support/exhaustive.ts';
import { createRandom, type Random } from '../../../e2e/random.ts';
import { startLeader } from '../../leader.ts';
import { stepLists } from './model-pod.ts';
import { ModelCluster } from './model.ts';

const walks = Number(process.env['ROLLOUT_WALKS'] ?? sized(200, 10_000));
const firstSeed = Number(process.env['ROLLOUT_SEED'] ?? 1);
const second = 1000;

/** How a rollout may end, or stand. Anything else is a stall in silence. */
const outcomes = ['done', 'rolled back', 'aborted', 'paused', 'waiting'] as const;
type Outcome = (typeof outcomes)[number];

/** @param isPaused by a person @param saidWhy it said lately what holds it, or it went on */
function outcomeOf(
  status: RolloutStatus | undefined,
  isPaused: boolean,
  saidWhy: boolean,
): Outcome | undefined {
  switch (status?.phase) {
    case 'Complete':
      return 'done';
    case 'RolledBack':
      return 'rolled back';
    case 'Aborted':
      return 'aborted';
    case 'Paused':
      return isPaused ? 'paused' : undefined;
    case 'Waiting':
      return status.message === '' ? undefined : 'waiting';
    case 'Progressing':
      return saidWhy ? 'waiting' : undefined;
    case undefined:
  }
  return undefined;
}

function isHeld(status: RolloutStatus | undefined): boolean {
  const condition = status?.conditions.find(({ type }) => type === 'Progressing');
  return condition?.reason === 'Held' && (status?.workloads.some(({ blocked }) => blocked) ?? false);
}

function specOf(random: Random): object {
  const { spec } = rollout({
    architecture: 'arm64',
    steps: random.pick(stepLists),
    pause: random.pick(['0s', '1m']),
    rebalance: random.chance(0.5),
    ...(random.chance(0.3) && { retryAfter: '3m' }),
  }) as { spec: object };
  return spec;
}

/** @returns how a walk ends. Throws if a step was wrong, or if it stalls in silence */
async function walk(cluster: ModelCluster, random: Random): Promise<Outcome> {
  await cluster.begin();
  for (let count = 0; count < 25; count += 1) {
    if (random.chance(0.3)) cluster.change();
    await look(cluster, random.pick([5, 10, 30]) * second);
  }
  // Nothing changes for 45 minutes; in the last 10, a rollout that only paused has taken a step.
  for (let count = 0; count < 35; count += 1) await look(cluster, 60 * second);
  const before = cluster.status;
  let saidWhy = false;
  for (let count = 0; count < 10; count += 1) {
    await look(cluster, 60 * second);
    saidWhy ||= isHeld(cluster.status);
  }
  const { status } = cluster;
  const isMoving = status?.step !== before?.step || status?.attempt !== before?.attempt;
  const outcome = outcomeOf(status, cluster.isPaused, saidWhy || isMoving);
  const left = cluster.leftThere();
  if (left.length > 0) throw new Error(`not moved back: ${left.join(' ')}: ${JSON.stringify(status)}`);
  if (outcome) return outcome;
  throw new Error(`it stalls: ${JSON.stringify(status)}`);
}

/** No step begins while a workload has no ready pod on the architecture, but wants some and has others. */
async function look(cluster: ModelCluster, ms: number): Promise<void> {
  const before = cluster.status;
  await cluster.look(ms);
  const { status } = cluster;
  if (!status) throw new Error('it has no status');
  for (const { name, blocked, ready, moved, wanted, pods } of status.workloads) {
    const isEnded = status.phase === 'RolledBack' || status.phase === 'Aborted';
    if (!isEnded && blocked === undefined && moved === 0 && wanted > 0 && before?.step === status.step)
      throw new Error(`${name} has no pod there, and does not say why: ${JSON.stringify(status)}`);
    const { there, elsewhere } = cluster.ready(name.replace('Deployment/', ''));
    const isNext = before?.phase === 'Progressing' && status.step === before.step + 1;
    const hadPods = before?.workloads.some((each) => each.name === name && each.wanted > 0 && !each.blocked);
    if (isNext && hadPods && moved > 0 && there === 0 && elsewhere > 0)
      throw new Error(`a step without a ready pod of ${name}: ${ready} of ${moved} of ${pods}`);
  }
  const held = cluster.events.filter(({ reason }) => reason === 'RolloutHeld');
  if (new Set(held.map(({ step }) => step)).size < held.length - (cluster.leaders - 1))
    throw new Error('a hold was reported twice');
}

t.test(`${walks} walks from seed ${firstSeed}`, async (t) => {
  const { leader } = await startLeader(t);
  const ends: Partial<Record<Outcome, number>> = {};
  for (let seed = firstSeed; seed < firstSeed + walks; seed += 1) {
    const random = createRandom(seed);
    try {
      const end = await walk(new ModelCluster(random, leader, specOf(random)), random);
      ends[end] = (ends[end] ?? 0) + 1;
    } catch (error) {
      t.fail(`seed ${seed}: ${(error as Error).message}`);
    }
  }
  t.comment(JSON.stringify(ends));
  for (const end of outcomes) t.ok((ends[end] ?? 0) > 0, `some end ${end}`);
});
