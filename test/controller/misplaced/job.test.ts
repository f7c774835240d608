/** What an eviction costs a Job, and that none ends by one. */
import t from 'tap';
import { lossesLeft, type Job } from '../../../src/controller/misplaced/job.ts';
import { evictions, putPod, serverStart, startWorld, type World } from './setup.ts';

const about = (action: string, type = 'DisruptionTarget', status?: string): object => ({
  action,
  onPodConditions: [{ type, ...(status && { status }) }],
});
const onExit = { action: 'FailJob', onExitCodes: { operator: 'In', values: [1] } };

const cases: readonly {
  readonly name: string;
  readonly spec?: object;
  readonly status?: object;
  readonly indexFailures?: string;
  readonly left: number;
}[] = [
  { name: 'the usual', left: 6 },
  { name: 'none', spec: { backoffLimit: 0 }, left: 0 },
  { name: 'some have failed', spec: { backoffLimit: 4 }, status: { failed: 3 }, left: 1 },
  {
    name: 'some are not counted yet',
    spec: { backoffLimit: 4 },
    status: { failed: 1, uncountedTerminatedPods: { failed: ['a', 'b'] } },
    left: 1,
  },
  {
    name: 'nothing to be counted',
    status: { uncountedTerminatedPods: {} },
    left: 6,
  },
  { name: 'more than allowed', spec: { backoffLimit: 1 }, status: { failed: 3 }, left: 0 },
  { name: 'of an index', spec: { backoffLimit: 100, backoffLimitPerIndex: 2 }, left: 2 },
  {
    name: 'of an index that failed before',
    spec: { backoffLimit: 100, backoffLimitPerIndex: 2 },
    indexFailures: '2',
    left: 0,
  },
  {
    name: 'of an index, and less of all',
    spec: { backoffLimit: 1, backoffLimitPerIndex: 2 },
    left: 1,
  },
  {
    name: 'evictions do not count',
    spec: { backoffLimit: 0, podFailurePolicy: { rules: [onExit, about('Ignore', undefined, 'True')] } },
    left: Infinity,
  },
  {
    name: 'a rule about the opposite, and about another condition',
    spec: {
      backoffLimit: 0,
      podFailurePolicy: { rules: [about('Ignore', undefined, 'False'), about('Ignore', 'ConfigIssue')] },
    },
    left: 0,
  },
  {
    name: 'evictions count as any failure',
    spec: { backoffLimit: 3, podFailurePolicy: { rules: [about('Count'), about('Ignore')] } },
    left: 3,
  },
  { name: 'one ends the Job', spec: { podFailurePolicy: { rules: [about('FailJob')] } }, left: 0 },
  { name: 'one ends the index', spec: { podFailurePolicy: { rules: [about('FailIndex')] } }, left: 0 },
  { name: 'a policy without rules', spec: { podFailurePolicy: { rules: null } }, left: 6 },
];

for (const { name, spec, status, indexFailures, left } of cases) {
  void t.test(`how many pods a Job may lose: ${name}`, async (t) => {
    const job: Job = { ...(spec && { spec }), ...(status && { status }) };
    const annotations =
      indexFailures === undefined ? {} : { 'batch.kubernetes.io/job-index-failure-count': indexFailures };
    t.equal(lossesLeft(job, { metadata: { annotations }, spec: { containers: [] } }), left);
  });
}

const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'work', uid: 'job-uid', controller: true };

function putJob({ store }: Pick<World, 'store'>, backoffLimit: number, failed: number): void {
  store.put('/apis/batch/v1/namespaces/shop/jobs/work', {
    metadata: { uid: 'job-uid' },
    spec: { parallelism: 3, backoffLimit },
    status: { failed },
  });
}

void t.test('a Job that would end by the eviction keeps its pod, and that is told once', async (t) => {
  const world = await startWorld(t);
  putJob(world, 0, 0);
  putPod(world.store, 'work-a', { owner });
  await world.afterGrace();
  await world.after(20_000);
  t.same(world.store.writes(), []);
  t.match(world.events, [
    {
      reason: 'MisplacedPod',
      about: { kind: 'Pod', name: 'work-a' },
      message: /its Job .* would fail for good/,
    },
    { reason: 'MisplacedPod', about: { kind: 'Job', name: 'work' } },
  ]);
  t.equal(world.events.length, 2);
  t.equal(await world.series('archwright_misplaced_pods_total{outcome="last-try"}'), 1);
});

void t.test('a Job loses no more pods than it may, also while it has not counted them', async (t) => {
  const world = await startWorld(t);
  const { store } = world;
  putJob(world, 2, 0);
  for (const name of ['work-a', 'work-b', 'work-c', 'work-d']) putPod(store, name, { owner });
  // It is going, and the Job has not heard of that.
  store.put('/api/v1/namespaces/shop/pods/work-d', {
    ...store.get('/api/v1/namespaces/shop/pods/work-d'),
    metadata: {
      ...store.get('/api/v1/namespaces/shop/pods/work-d')?.metadata,
      deletionTimestamp: new Date(serverStart).toISOString(),
    },
  });
  let [limit, failed] = [2, 0];
  store.fault(evictions, { before: () => putJob(world, limit, ++failed) });
  await world.afterGrace();
  t.equal(store.asked(evictions).length, 1, 'one is going, one may');
  t.same(
    world.events.filter(({ reason }) => reason === 'MisplacedPod'),
    [],
    'what may still change is not told',
  );

  putJob(world, limit, ++failed);
  store.remove('/api/v1/namespaces/shop/pods/work-d');
  await world.after(20_000);
  t.equal(store.asked(evictions).length, 1);
  t.ok(world.events.some(({ reason }) => reason === 'MisplacedPod'));

  limit = 4;
  putJob(world, limit, failed);
  await world.after(10 * 60_000);
  t.equal(store.asked(evictions).length, 3, 'it may lose two more');
});
