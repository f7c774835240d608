/** When the pods on the new architecture are less healthy than the others. */
import t from 'tap';
import { verdictOf } from '../../../../src/controller/features/rollouts/health.ts';
import type { RolledPod } from '../../../../src/controller/features/rollouts/pods.ts';
import { readRollout } from '../../../../src/policy/resources/rollout.ts';
import { rollout } from '../../../policy/resources/objects.ts';
import { runningPod } from '../../leader.ts';
import { digest } from './world.ts';
import { like } from '../../../support/like.ts';

const since = 1_000_000;
const second = 1000;

interface PodLine {
  readonly count: number;
  readonly isTarget: boolean;
  readonly restarts?: number;
  /** Seconds after the start. */
  readonly created?: number;
  /** Seconds after its creation. Absent: not ready. */
  readonly took?: number;
  readonly exit?: { readonly exitCode: number; readonly message?: string };
  /** Seconds until it had a node. Default: 0. `Infinity`: no node. */
  readonly waited?: number;
  /** Default: `web-1`. */
  readonly replicaSet?: string;
}
type PodState = Omit<PodLine, 'count' | 'isTarget'>;

/** This number of pods on the architecture, or on others. */
const target = (count: number, state: PodState): PodLine => ({ ...state, count, isTarget: true });
const other = (count: number, state: PodState): PodLine => ({ ...state, count, isTarget: false });

function podsOf(lines: readonly PodLine[]): readonly RolledPod[] {
  return lines.flatMap((line, index) =>
    Array.from({ length: line.count }, (_, copy): RolledPod => {
      const { isTarget, restarts = 0, created = 1, took, exit } = line;
      const { waited = 0, replicaSet = 'web-1' } = line;
      const createdAt = since + created * second;
      const container = { name: 'c', image: 'app', imageID: `app@${digest}`, ready: false, running: false };
      const ended = { ...container, restartCount: restarts, reason: undefined };
      return {
        namespace: 'shop',
        name: `p-${index}-${copy}`,
        uid: `u-${index}-${copy}`,
        owner: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: replicaSet, uid: replicaSet },
        createdAt,
        scheduledAt: createdAt + (waited === Infinity ? 0 : waited * second),
        ready: took !== undefined,
        readySince: createdAt + (took ?? (waited === Infinity ? 0 : waited)) * second,
        restarts,
        isTarget,
        isMoved: isTarget,
        ...(waited !== Infinity && {
          running: runningPod({
            containers: exit ? [{ ...ended, exitCode: exit.exitCode, message: exit.message }] : [],
          }),
        }),
      };
    }),
  );
}

const fine = { took: 5 };
const crashing = { restarts: 2 };
const execFormat = { exit: { exitCode: 255, message: 'exec /app: exec format error' } };
const level = { exit: { exitCode: 127, message: 'Fatal glibc error: CPU does not support x86-64-v3' } };
const exited = { restarts: 1, exit: { exitCode: 1 } };
const ofNew = { replicaSet: 'web-2' };

interface More {
  readonly spec?: object;
  readonly broken?: string;
}

/** Without a message, the pods are healthy enough. */
const rows: Readonly<
  Record<string, readonly [now: number, pods: readonly PodLine[], said?: RegExp, more?: More]>
> = {
  'all are healthy': [60, [target(5, fine), other(5, fine)]],
  'no pods': [60, []],
  'two of five are not enough': [60, [target(2, crashing), target(3, fine), other(1, fine)]],
  'three of five are enough': [
    60,
    [target(3, crashing), target(2, fine), other(1, fine)],
    /^web: 3 of 5 pods on arm64 are unhealthy, of the others 0 of 1: p-0-0 restarted 2 times$/,
  ],
  'one of one is enough': [60, [target(1, crashing), other(1, fine)], /1 of 1 pods on arm64/],
  'the others are as bad': [60, [target(3, crashing), other(3, crashing)]],
  'the others are nearly as bad': [60, [target(10, crashing), other(9, crashing), other(1, fine)]],
  'without tolerance': [
    60,
    [target(10, crashing), other(9, crashing), other(1, fine)],
    /10 of 10 .* 9 of 10/,
    { spec: { tolerance: '0%' } },
  ],
  'three of a hundred are within the tolerance': [
    60,
    [target(3, crashing), target(97, fine), other(1, fine)],
  ],
  'fewer restarts than set': [60, [target(1, { ...fine, restarts: 1 }), other(1, fine)]],
  'not ready in time': [302, [target(3, {})], /there are no others: p-0-0 has not been ready for 5m1s/],
  'not ready yet': [300, [target(3, {})]],
  'not ready for longer than the others took': [
    32,
    [target(3, {}), other(3, fine)],
    /p-0-0 has not been ready for 31s/,
  ],
  'slower than the others': [
    100,
    [target(3, { took: 90 }), other(3, { took: 20 })],
    /p-0-0 took 1m30s to become ready, the others 20s/,
  ],
  'not much slower': [100, [target(3, { took: 60 }), other(3, { took: 20 })]],
  'an autoscaler adds their node': [
    200,
    [target(3, { waited: 100, took: 110 }), target(3, { waited: Infinity }), other(3, fine)],
  ],
  'no node for too long': [
    302,
    [target(1, { waited: Infinity }), other(1, fine)],
    /p-0-0 has not been ready for 5m1s/,
  ],
  'a new version that crashes everywhere': [
    60,
    [target(1, { ...crashing, ...ofNew }), other(4, { ...crashing, ...ofNew }), other(8, fine)],
  ],
  'a new version that crashes only there': [
    60,
    [target(4, fine), other(4, fine), target(3, { ...crashing, ...ofNew }), other(3, { ...fine, ...ofNew })],
    /3 of 3 pods on arm64 are unhealthy, of the others 0 of 3/,
  ],
  'a new version that exists only there is compared with the old one': [
    60,
    [target(3, { ...crashing, ...ofNew }), other(1, fine)],
    /3 of 3 pods on arm64 are unhealthy, of the others 0 of 1/,
  ],
  'older pods give no time to compare with': [
    100,
    [target(3, { took: 90 }), other(3, { created: -900, took: 1 })],
  ],
  'pods from before the attempt count too': [
    60,
    [target(2, { created: -900 }), other(8, fine)],
    /^web: 2 of 2 pods on arm64 are unhealthy, of the others 0 of 8: p-0-0 has not been ready for 16m$/,
  ],
  'an exec format error of one of many': [
    60,
    [target(1, execFormat), target(50, fine), other(1, fine)],
    /^web: pod p-0-0: its program is not built for the CPU of the node$/,
  ],
  'a CPU below the level': [60, [target(1, level), target(50, fine)], /not built/],
  'an exec format error on another architecture': [60, [other(1, execFormat), target(5, fine)]],
  'a crash of an image that is noted': [
    60,
    [target(1, exited), target(50, fine)],
    /app cannot run there/,
    { broken: 'app cannot run there' },
  ],
  'a crash of another image': [60, [target(1, exited), target(50, fine)]],
};

for (const [about, [now, lines, said, { spec, broken } = {}]] of Object.entries(rows))
  t.test(about, (t) => {
    const read = readRollout(rollout({ architecture: 'arm64', ...spec })).value;
    if (!read) throw new Error('not valid');
    const verdict = verdictOf({
      workload: { namespace: 'shop', name: 'web', pods: podsOf(lines), going: 0 },
      rollout: read,
      since,
      now: since + now * second,
      restartsOf: ({ restarts }) => restarts,
      broken,
    });
    if (said) like(t, verdict?.message, said);
    else t.equal(verdict, undefined);
    t.end();
  });
