/** A rollout of `Deployment/web` in an API server with a store. A test calls the leader's reconcile. */
import type { Test } from 'tap';
import { RolloutReconciler } from '../../../../src/controller/features/rollouts/rollouts.ts';
import { PodCounts } from '../../../../src/controller/features/rollouts/pods.ts';
import { RolloutShares } from '../../../../src/controller/features/rollouts/shares.ts';
import type { RolloutStatus } from '../../../../src/controller/features/rollouts/status.ts';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import { createPolicies } from '../../../../src/policy/effective/policies.ts';
import { collectResources } from '../../../../src/policy/resources/collection.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import type { KubeStore } from '../../../support/kube-store.ts';
import { facts } from '../../../support/placement-input.ts';
import { rollout } from '../../../policy/resources/objects.ts';
import { controllerRef, nodeStatus, podPath, putPod } from '../../objects.ts';
import { startLeader, type TestLeaderOptions } from '../../leader.ts';

export const rolloutPath = '/apis/arch.example/v1alpha1/namespaces/shop/architecturerollouts/web';
export { podPath };
export const evictions = /^POST .*\/eviction$/;
export const digest = `sha256:${'a'.repeat(64)}`;

export const known = {
  app: facts('amd64 arm64', { image: 'app', digest }),
  amd: facts('amd64', { image: 'amd' }),
};

export interface PodOptions {
  /** Default: `web-1`. */
  readonly replicaSet?: string;
  readonly image?: string;
  /** Default: an amd64 node. Empty: none yet. */
  readonly node?: string;
  /** The rollout chose its architecture. */
  readonly side?: 'Target' | 'Other';
  /** It required amd64, and was widened. */
  readonly widened?: boolean;
  readonly ready?: boolean;
  /** Seconds until it was ready. Default: 5. */
  readonly took?: number;
  /** Seconds ago. Default: 0. */
  readonly age?: number;
  readonly restarts?: number;
  /** Of a container that ended. */
  readonly exit?: { readonly code: number; readonly message?: string };
  readonly kind?: string;
  readonly claims?: readonly string[];
  readonly spec?: Partial<Pod['spec']>;
  readonly labels?: Readonly<Record<string, string>>;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** @param spec of the rollout */
export async function startWorld(
  t: Test,
  spec: object = {},
  options: Pick<TestLeaderOptions, 'factsOfPod'> = {},
) {
  const clock = createFakeClock();
  const test = await startLeader(t, { facts: known, ...options, clock, now: clock.now });
  const { store } = test;
  const { caches, client, signal } = test.leader;
  const leader: LeaderContext = {
    ...test.leader,
    policies: createPolicies({
      configuration: test.leader.configuration,
      controllerLeads: () => true,
      resources: collectResources(caches),
    }),
  };
  store.put('/api/v1/namespaces/shop', { metadata: { name: 'shop', labels: {} } });
  for (const name of ['amd-1', 'arm-1'])
    store.put(`/api/v1/nodes/${name}`, nodeOf(name.startsWith('arm') ? 'arm64' : 'amd64'));
  const { spec: wanted } = rollout({ architecture: 'arm64', pause: '1m', ...spec });
  store.put(rolloutPath, { metadata: { generation: 1 }, spec: wanted });
  const shares = new RolloutShares({ client, caches, signal, clock });
  const reconciler = new RolloutReconciler(leader, new PodCounts(leader));
  const settled = async (): Promise<void> => {
    await test.settled();
    const wanted = store.get(rolloutPath)?.metadata.resourceVersion;
    const versionOf = (): unknown => caches.rollouts.get('shop', 'web')?.metadata?.resourceVersion;
    await store.until(() => versionOf() === wanted, 'the cache of rollouts');
  };
  let requeueAfterMs: number | undefined;
  return {
    ...test,
    leader,
    clock,
    shares,
    /** When the last reconcile wants the next. */
    requeueAfterMs: () => requeueAfterMs,
    settled,
    status: () => store.get(rolloutPath)?.['status'] as RolloutStatus,
    change: (changes: object): void => {
      const object = store.get(rolloutPath);
      const merged = { ...(object?.['spec'] as object), ...changes };
      store.put(rolloutPath, { ...object, spec: merged });
    },
    reconcile: async (key = 'shop/web'): Promise<RolloutStatus> => {
      await settled();
      // Pods are counted again after this time.
      await clock.advance(200);
      requeueAfterMs = (await reconciler.reconcile(key))?.requeueAfterMs;
      await settled();
      return store.get(rolloutPath)?.['status'] as RolloutStatus;
    },
    pod: (name: string, more: PodOptions = {}): void => {
      const createdAt = clock.now() - (more.age ?? 0) * 1000;
      putRolled(store, name, more, createdAt, createdAt + (more.took ?? 5) * 1000);
    },
    /** Claims with volumes in these zones, and the zone of the arm64 node. */
    zones: (claims: Readonly<Record<string, string | undefined>>, zone: string): void => {
      const node = nodeOf('arm64');
      const labels = { ...node.metadata.labels, zone };
      store.put('/api/v1/nodes/arm-1', { ...node, metadata: { labels } });
      for (const [name, value] of Object.entries(claims)) {
        const matchExpressions = [{ key: 'zone', operator: 'In', values: [value] }];
        const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
        const spec = value === undefined ? {} : { nodeAffinity };
        store.put(`/api/v1/persistentvolumes/pv-${name}`, { spec });
        const claim = { spec: { volumeName: `pv-${name}` } };
        store.put(`/api/v1/namespaces/shop/persistentvolumeclaims/${name}`, claim);
      }
    },
    evicted: (): readonly string[] =>
      store.requests
        .filter(({ method, path }) => evictions.test(`${method} ${path}`))
        .map(({ path }) => path.split('/').at(-2) ?? ''),
  };
}

export function nodeOf(architecture: string) {
  return {
    metadata: { labels: { 'kubernetes.io/arch': architecture, 'kubernetes.io/os': 'linux' } },
    status: nodeStatus(architecture),
  };
}

function putRolled(store: KubeStore, name: string, options: PodOptions, createdAt: number, readyAt: number) {
  const { replicaSet = 'web-1', image = 'app', node = 'amd-1', side, kind = 'ReplicaSet', exit } = options;
  const { widened = false, ready = node !== '', restarts = 0, claims = [] } = options;
  const hash = replicaSet.split('-').at(-1) ?? '';
  const architectures = [side === 'Target' ? 'arm64' : 'amd64'];
  const why = widened
    ? { widened: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } } }
    : { rollout: ['web', side] };
  const record = { v: 1, outcome: 'placed', architectures, imagesKey: '', added: {}, ...why };
  putPod(store, name, {
    node,
    image,
    imageID: `app@${digest}`,
    owner: controllerRef(kind, replicaSet),
    phase: node === '' ? 'Pending' : 'Running',
    ready,
    changedAt: ready ? Math.max(createdAt, readyAt) : createdAt,
    createdAt,
    metadata: { uid: `uid-${name}` },
    labels: { app: 'web', 'pod-template-hash': hash, ...options.labels },
    ...((side || widened) && { annotations: { 'arch.example/decision': JSON.stringify(record) } }),
    spec: {
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      ...options.spec,
    },
    status: {
      restartCount: restarts,
      ...(exit && { state: { terminated: { exitCode: exit.code, message: exit.message } } }),
    },
  });
}
