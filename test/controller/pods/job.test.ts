/** Evictions count as failures of a Job's pods. No Job ends by an eviction. */
import t from 'tap';
import { lossesLeft, type Job } from '../../../src/controller/pods/workload.ts';
import { controllerRef } from '../objects.ts';
import {
  evictions,
  podPath,
  putPod,
  startDeleting,
  startWorld,
  type World,
} from '../features/misplaced/setup.ts';
import { like } from '../../support/like.ts';

const about = (action: string, type = 'DisruptionTarget', status?: string): object => ({
  action,
  onPodConditions: [{ type, ...(status && { status }) }],
});
const onExit = { action: 'FailJob', onExitCodes: { operator: 'In', values: [1] } };

const none = { backoffLimit: 0 };
const perIndex = { backoffLimit: 100, backoffLimitPerIndex: 2 };
const rules = (...all: object[]): object => ({ podFailurePolicy: { rules: all } });
const opposite = [about('Ignore', undefined, 'False'), about('Ignore', 'ConfigIssue')];

const cases: readonly [name: string, left: number, spec?: object, status?: object, indexFailures?: string][] =
  [
    ['the usual', 6],
    ['none', 0, none],
    ['some have failed', 1, { backoffLimit: 4 }, { failed: 3 }],
    [
      'some are not counted yet',
      1,
      { backoffLimit: 4 },
      { failed: 1, uncountedTerminatedPods: { failed: ['a', 'b'] } },
    ],
    ['an empty list of uncounted pods', 6, {}, { uncountedTerminatedPods: {} }],
    ['more than allowed', 0, { backoffLimit: 1 }, { failed: 3 }],
    ['of an index', 2, perIndex],
    ['of an index that failed before', 0, perIndex, {}, '2'],
    ['of an index, and fewer of the Job', 1, { ...perIndex, backoffLimit: 1 }],
    ['evictions do not count', Infinity, { ...none, ...rules(onExit, about('Ignore', undefined, 'True')) }],
    ['a rule about the opposite, and about another condition', 0, { ...none, ...rules(...opposite) }],
    ['evictions count as any failure', 3, { backoffLimit: 3, ...rules(about('Count'), about('Ignore')) }],
    ['one ends the Job', 0, rules(about('FailJob'))],
    ['one ends the index', 0, rules(about('FailIndex'))],
    ['a policy without rules', 6, { podFailurePolicy: { rules: null } }],
  ];

for (const [name, left, spec, status, indexFailures] of cases) {
  t.test(`the number of pods that a Job may lose: ${name}`, async (t) => {
    const job: Job = { ...(spec && { spec }), ...(status && { status }) };
    const annotations =
      indexFailures === undefined ? {} : { 'batch.kubernetes.io/job-index-failure-count': indexFailures };
    t.equal(lossesLeft(job, { metadata: { annotations }, spec: { containers: [] } }), left);
  });
}

const owner = controllerRef('Job', 'work', { apiVersion: 'batch/v1', uid: 'job-uid' });

function putJob({ store }: Pick<World, 'store'>, backoffLimit: number, failed: number): void {
  store.put('/apis/batch/v1/namespaces/shop/jobs/work', {
    metadata: { uid: 'job-uid' },
    spec: { parallelism: 3, backoffLimit },
    status: { failed },
  });
}

t.test('a pod whose eviction would end its Job stays, with one event', async (t) => {
  const world = await startWorld(t);
  putJob(world, 0, 0);
  putPod(world.store, 'work-a', { owner });
  await world.afterGrace();
  await world.after(20_000);
  t.strictSame(world.store.writes(), []);
  const message = /its Job .* would fail permanently/;
  like(t, world.events, [
    { reason: 'MisplacedPod', about: { kind: 'Pod', name: 'work-a' }, message },
    { reason: 'MisplacedPod', about: { kind: 'Job', name: 'work' } },
  ]);
  t.equal(world.events.length, 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="last-try"}'), 1);
});

t.test('a Job loses no more pods than it may, even before it has counted them', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putJob(world, 2, 0);
  for (const name of ['work-a', 'work-b', 'work-c', 'work-d']) putPod(store, name, { owner });
  // It terminates, and the Job has not counted it yet.
  startDeleting(store, 'work-d');
  let [limit, failed] = [2, 0];
  store.fault(evictions, { before: () => putJob(world, limit, ++failed) });
  await world.afterGrace();
  t.equal(store.received(evictions).length, 1, 'one terminates, so one is evicted');
  const hasEvent = (): boolean => world.events.some(({ reason }) => reason === 'MisplacedPod');
  t.notOk(hasEvent(), 'no event while this may still change');

  putJob(world, limit, ++failed);
  store.remove(podPath('work-d'));
  await world.after(20_000);
  t.equal(store.received(evictions).length, 1);
  t.ok(hasEvent());

  limit = 4;
  putJob(world, limit, failed);
  await world.after(10 * 60_000);
  t.equal(store.received(evictions).length, 3, 'it may lose two more');
});
