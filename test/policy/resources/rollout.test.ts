/** Reading an `ArchitectureRollout`, its pods, and the pods of each step. */
import t from 'tap';
import { controllerRef } from '../../controller/objects.ts';
import {
  byAge,
  formatStep,
  isInRollout,
  readRollout,
  rolledWorkloadOf,
  wantedPods,
  type Step,
} from '../../../src/policy/resources/rollout.ts';
import { rollout, rolloutCases } from './objects.ts';
import { like } from '../../support/like.ts';

t.test('rollouts are read exactly if the API server accepts them', async (t) => {
  for (const { about, object, refused, isReadable } of rolloutCases) {
    const { problems } = readRollout(object);
    t.equal(
      problems.length > 0,
      refused !== undefined && isReadable !== true,
      `${about}: ${problems.join('; ')}`,
    );
  }
});

t.test('a rollout has defaults', async (t) => {
  like(t, readRollout({ ...rollout({ architecture: 'arm64' }), metadata: null } as object).value, {
    namespace: '',
    createdAt: 0,
  });
  like(t, readRollout(rollout({ architecture: 'arm64' })).value, {
    steps: [{ percent: 10 }, { percent: 50 }, { percent: 100 }],
    pauseMs: 600_000,
    unhealthy: { restarts: 2, readyWithin: 300_000, timesSlower: 3 },
    tolerance: 10,
    retryAfterMs: undefined,
    rebalance: false,
    names: undefined,
    selector: [],
    newPods: undefined,
  });
});

const replicaSet = controllerRef('ReplicaSet', 'web-7d4b9c', { uid: 'r' });
const labels = { app: 'web', 'pod-template-hash': '7d4b9c' };

t.test('the workload of a pod is its Deployment, ReplicaSet or StatefulSet', async (t) => {
  t.strictSame(rolledWorkloadOf(replicaSet, labels), { kind: 'Deployment', name: 'web' });
  t.strictSame(rolledWorkloadOf(replicaSet, {}), { kind: 'ReplicaSet', name: 'web-7d4b9c' });
  const unhashed = { ...replicaSet, name: 'web-' };
  t.strictSame(rolledWorkloadOf(unhashed, { 'pod-template-hash': '' }), { kind: 'ReplicaSet', name: 'web-' });
  const statefulSet = { ...replicaSet, kind: 'StatefulSet', name: 'db' };
  t.strictSame(rolledWorkloadOf(statefulSet, {}), { kind: 'StatefulSet', name: 'db' });
  for (const kind of ['DaemonSet', 'Job'])
    t.equal(rolledWorkloadOf({ ...replicaSet, kind }, labels), undefined, kind);
  t.equal(rolledWorkloadOf({ ...replicaSet, apiVersion: 'apps.kruise.io/v1' }, labels), undefined);
  t.equal(rolledWorkloadOf(undefined, labels), undefined);
});

t.test('names and selector choose the pods of a rollout', async (t) => {
  const is = (spec: object): boolean => {
    const read = readRollout(rollout({ architecture: 'arm64', ...spec })).value;
    return read !== undefined && isInRollout(read, replicaSet, labels);
  };
  t.equal(is({}), true);
  t.equal(is({ names: ['web', 'x'] }), true);
  t.equal(is({ names: ['x'] }), false);
  t.equal(is({ selector: { matchLabels: { app: 'web' } } }), true);
  t.equal(is({ selector: { matchLabels: { app: 'x' } }, names: ['web'] }), false);
});

t.test('a step is a rounded percentage or a number of pods', async (t) => {
  const rows: readonly (readonly [Step, count: number, wanted: number])[] = [
    [{ percent: 10 }, 0, 0],
    [{ percent: 10 }, 1, 0],
    [{ percent: 50 }, 1, 1],
    [{ percent: 0 }, 9, 0],
    [{ percent: 1 }, 2, 1],
    [{ percent: 10 }, 2, 1],
    [{ percent: 10 }, 10, 1],
    [{ percent: 10 }, 14, 1],
    [{ percent: 10 }, 15, 2],
    [{ percent: 50 }, 9, 5],
    [{ percent: 100 }, 9, 9],
    [{ pods: 3 }, 2, 2],
    [{ pods: 3 }, 9, 3],
  ];
  for (const [step, count, wanted] of rows)
    t.equal(wantedPods(step, count), wanted, `${formatStep(step)} of ${count}`);
});

t.test('rollouts are ordered by age, then name', async (t) => {
  const at = (name: string, createdAt: number) => ({
    ...readRollout(rollout({ architecture: 'a' }, name)).value,
    createdAt,
  });
  const all = [at('b', 2), at('a', 2), at('c', 1)] as Parameters<typeof byAge>[0][];
  t.strictSame(
    all.sort(byAge).map(({ name }) => name),
    ['c', 'a', 'b'],
  );
});
