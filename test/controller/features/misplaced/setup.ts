/** Misplaced pods of a workload in an API server with a store. A test calls the leader's reconcile. */
import type { Test } from 'tap';
import { MisplacedPods } from '../../../../src/controller/features/misplaced/misplaced.ts';
import type { ImageFacts } from '../../../../src/images/facts/facts.ts';
import { createFakeClock, type FakeClock } from '../../../support/fake-clock.ts';
import type { KubeStore, StoredObject } from '../../../support/kube-store.ts';
import { facts } from '../../../support/placement-input.ts';
import {
  controllerRef,
  podPath,
  putNode,
  putPod as putAnyPod,
  putReplicaSet,
  type PodOptions,
} from '../../objects.ts';

export type { PodOptions };
import { startLeader, type TestLeaderOptions } from '../../leader.ts';

export const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;
export const evictions = /^POST .*\/eviction$/;

/** What the kubelet pulled. */
export const pulled = (letter: string): string => `registry.example/app@${digest(letter)}`;

/** Facts of `app:1`, which is for amd64 alone, and of `both:1`. */
export const known: Readonly<Record<string, ImageFacts>> = {
  [pulled('a')]: facts('amd64', { digest: digest('a') }),
  'app:1': facts('amd64', { image: 'app:1', digest: digest('a') }),
  'both:1': facts('amd64 arm64', { image: 'both:1', digest: digest('b') }),
};

export const serverStart = Date.parse('2026-11-21T12:00:00Z');

export type World = Awaited<ReturnType<typeof startWorld>>;

export interface WorldOptions extends Omit<TestLeaderOptions, 'over' | 'clock' | 'now'> {
  /** Names of misplaced pods: all pods of their ReplicaSet. */
  readonly pods?: readonly string[];
  /** An earlier leader. */
  readonly over?: { readonly store: KubeStore; readonly clock: FakeClock };
  /** Called in each pause between evictions. */
  readonly whilePausing?: (store: KubeStore) => void;
}

export async function startWorld(t: Test, options: WorldOptions = {}) {
  const { over, whilePausing, pods = [], ...rest } = options;
  const clock = over?.clock ?? createFakeClock();
  if (!over) clock.setWall(serverStart);
  const pauses: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    pauses.push(ms);
    await clock.advance(ms);
    whilePausing?.(test.store);
  };
  const test = await startLeader(t, {
    facts: known,
    ...rest,
    configuration: { misplacedPodsShare: 100, ...options.configuration },
    clock: { ...clock, sleep },
    ...(over && { over: over.store }),
  });
  const work = new MisplacedPods(test.leader);
  const keys = new Set<string>();
  test.leader.caches.runningPods.onEach(({ namespace, name }) => void keys.add(`${namespace}/${name}`));
  /** Reconciles every pod that there is or was, at the same time. */
  const reconcile = async (): Promise<void> => {
    const all = new Set([...work.keys(), ...keys]);
    await Promise.all([...all].map((key) => work.reconcile(key)));
  };
  const { store } = test;
  if (!over) {
    putNode(store, 'amd-1', 'amd64');
    putNode(store, 'arm-1', 'arm64');
    putReplicas(store, Math.max(1, pods.length));
  }
  for (const name of pods) putPod(store, name);
  /** Reconciles after this time, in milliseconds. */
  const after = async (ms: number): Promise<void> => {
    await test.settled();
    await clock.advance(ms);
    await test.settled();
    await reconcile();
  };
  return {
    ...test,
    clock,
    /** Server time. */
    now: clock.now,
    /** Waiting times between evictions. */
    pauses,
    reconcile,
    after,
    /** Reconciles after the grace period of the suspects. */
    afterGrace: async (): Promise<void> => {
      await after(0);
      await after(31_000);
    },
    /** Names of the existing pods. */
    pods: () => store.list('/api/v1/pods').map(({ metadata }) => metadata.name),
  };
}

export { podPath };

/** The Deployment `web`, by its ReplicaSet. */
export function putReplicas(store: KubeStore, replicas: number): void {
  const deployment = controllerRef('Deployment', 'web', { uid: 'deployment-uid' });
  putReplicaSet(store, 'web-1', deployment, { uid: 'rs-uid', spec: { replicas } });
}

export const webOwner = controllerRef('ReplicaSet', 'web-1', { uid: 'rs-uid' });

/** Starts the deletion of a pod, which goes on terminating. */
export function startDeleting(store: KubeStore, name: string): void {
  const pod = store.get(podPath(name));
  const deletionTimestamp = new Date(serverStart).toISOString();
  store.put(podPath(name), { ...pod, metadata: { ...pod?.metadata, deletionTimestamp } });
}

/** Default: a crashing pod of `app:1` on the arm64 node. */
export function putPod(store: KubeStore, name: string, options: PodOptions = {}): StoredObject {
  const crashing = { state: { waiting: { reason: 'CrashLoopBackOff' } }, restartCount: 3, ready: false };
  return putAnyPod(store, name, {
    node: 'arm-1',
    owner: webOwner,
    ready: false,
    createdAt: serverStart - 3_600_000,
    imageID: pulled(options.image === 'both:1' ? 'b' : 'a'),
    ...options,
    status: { ...crashing, ...options.status },
  });
}
