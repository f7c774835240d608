/**
 * A model of a cluster in memory, for many random walks: ReplicaSets, a scheduler, kubelets, budgets and
 * nodes, changed by chance. The rollout's reconcile and its choice of new pods are the real ones.
 */
import { createNodeClasses } from '../../../../src/cluster/nodes.ts';
import {
  trimNode,
  trimRunningPod,
  type CachedNode,
  type RunningPod,
} from '../../../../src/controller/state/cached.ts';
import type { Caches } from '../../../../src/controller/state/caches.ts';
import { trimWaitingPod, type WaitingPod } from '../../../../src/controller/state/waiting-pods.ts';
import { createEvictor } from '../../../../src/controller/write/evictor.ts';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import { PodCounts } from '../../../../src/controller/features/rollouts/pods.ts';
import { RolloutReconciler } from '../../../../src/controller/features/rollouts/rollouts.ts';
import { RolloutShares } from '../../../../src/controller/features/rollouts/shares.ts';
import type { RolloutStatus } from '../../../../src/controller/features/rollouts/status.ts';
import type { KubeClient, Patch } from '../../../../src/kube/api/client.ts';
import { KubeError } from '../../../../src/kube/api/errors.ts';
import type { KubeObject, Pod } from '../../../../src/kube/api/objects.ts';
import { createPolicies } from '../../../../src/policy/effective/policies.ts';
import { collectResources } from '../../../../src/policy/resources/collection.ts';
import { createMetrics } from '../../../../src/telemetry/metrics.ts';
import type { Random } from '../../../e2e/random.ts';
import { noTimers } from '../../../support/fake-clock.ts';
import { factsByImage } from '../../leader.ts';
import {
  checkEviction,
  healths,
  ModelCache,
  objectOf,
  run,
  stepLists,
  type Health,
  type ModelPod,
} from './model-pod.ts';
import { known, nodeOf, podPath, rolloutPath } from './world.ts';

const second = 1000;

export class ModelCluster {
  readonly #random: Random;
  readonly #leader: LeaderContext;
  readonly #shares: RolloutShares;
  readonly #caches = {
    waitingPods: new ModelCache<WaitingPod>('shop'),
    runningPods: new ModelCache<RunningPod>('shop'),
    rollouts: new ModelCache<KubeObject>('shop'),
    podConfigs: new ModelCache<KubeObject>('shop'),
    nodes: new ModelCache<CachedNode>(''),
    namespaces: new ModelCache<Readonly<Record<string, string>>>(''),
    clusterConfigs: new ModelCache<KubeObject>(''),
  };
  readonly #pods = new Map<string, ModelPod>();
  readonly #replicas: Record<string, number> = {};
  #rollout: KubeObject & { spec: object; status?: RolloutStatus };
  #reconciler: RolloutReconciler;
  #now = Date.parse('2026-11-01T00:00:00Z');
  #made = 0;
  #isKnown = true;
  /** Budgets hold each pod whose number is divisible by this; 0: none. */
  #heldPart = 0;
  #arm: 'ready' | 'full' | 'absent' = 'ready';
  #health: Record<'amd' | 'arm', Health> = { amd: 'fine', arm: 'fine' };
  leaders = 1;
  readonly events: { readonly reason: string; readonly step: string }[] = [];

  /** @param base whatever the model does not replace */
  constructor(random: Random, base: LeaderContext, spec: object) {
    this.#random = random;
    const caches = this.#caches;
    const clock = { ...noTimers, now: () => this.#now, monotonic: () => this.#now - 1e12 };
    const all: Caches = { ...caches, ready: () => Promise.resolve(), stop: () => undefined };
    const configuration = base.configuration;
    const client = this.#client();
    this.#leader = {
      ...base,
      caches: all,
      clock,
      serverNow: clock.now,
      client,
      metrics: createMetrics(),
      evict: createEvictor({ client, signal: base.signal, clock, configuration }),
      nodeClasses: createNodeClasses(caches.nodes),
      factsOfPod: ({ uses }) =>
        Promise.resolve(factsByImage(uses, () => (this.#isKnown ? known.app : undefined))),
      policies: createPolicies({
        configuration,
        controllerLeads: () => true,
        resources: collectResources({ rollouts: caches.rollouts }),
      }),
      events: {
        record: (_, { reason }) => {
          const { observedGeneration = 1, attempt = 1, step = 0 } = this.status ?? {};
          this.events.push({ reason, step: `${observedGeneration}/${attempt}/${step}` });
        },
      },
    };
    this.#shares = new RolloutShares(this.#leader);
    this.#reconciler = new RolloutReconciler(this.#leader, new PodCounts(this.#leader));
    this.#rollout = { metadata: { namespace: 'shop', name: 'web', uid: 'r', generation: 1 }, spec };
    this.#caches.rollouts.set('web', this.#rollout);
    this.#putNodes();
  }

  get status(): RolloutStatus | undefined {
    return this.#rollout.status;
  }
  get isPaused(): boolean {
    return 'paused' in this.#rollout.spec && this.#rollout.spec.paused === true;
  }

  /** Workloads with pods from before the rollout, on either side, in any health. */
  async begin(): Promise<void> {
    for (const workload of ['web', 'api'].slice(0, this.#random.below(2) + 1))
      this.#replicas[workload] = this.#random.below(11);
    this.#health = { amd: this.#healthByChance(), arm: this.#healthByChance() };
    for (let tick = 0; tick < this.#random.below(5); tick += 1) await this.#pass(30 * second);
    if (this.#random.chance(0.5)) this.#health = { amd: 'fine', arm: 'fine' };
  }

  async look(ms: number): Promise<void> {
    await this.#pass(ms);
    await this.#reconciler.reconcile('shop/web');
  }

  /** How many pods of a workload are ready, on the architecture of the rollout and elsewhere. */
  ready(workload: string) {
    const live = this.#live(workload).filter(({ ready }) => ready);
    const there = live.filter(({ node }) => node === 'arm').length;
    return { there, elsewhere: live.length - there };
  }

  /** Pods that were not moved back half an hour after a rollback, although no budget or unready pod holds them. */
  leftThere(): readonly string[] {
    if (!(this.#now - Date.parse(this.status?.endedAt ?? '') > 1800 * second)) return [];
    const workloads = Object.keys(this.#replicas).map(this.#live.bind(this));
    const isFine = ({ ready, health, node }: ModelPod) => ready && node && health[node] === 'fine';
    const healthy = workloads.filter((pods) => pods.every(isFine)).flat();
    return healthy.filter((pod) => pod.side === 'Target' && !this.#isHeld(pod)).map(({ name }) => name);
  }

  #live(workload: string): readonly ModelPod[] {
    const pods = [...this.#pods.values()];
    return pods.filter((pod) => pod.workload === workload && pod.deletedAt === undefined);
  }

  #isHeld({ name }: ModelPod): boolean {
    return this.#heldPart > 0 && Number(name.split('-')[1]) % this.#heldPart === 0;
  }

  /** Something that people, nodes, registries or leaders do. */
  change(): void {
    const random = this.#random;
    const workloads = Object.keys(this.#replicas);
    const all: readonly (() => void)[] = [
      () => (this.#replicas[random.pick(workloads)] = random.below(11)),
      () => (this.#replicas[random.pick(workloads)] = random.below(11)),
      () => (this.#health = { ...this.#health, arm: random.pick(healths) }),
      () => (this.#health = { ...this.#health, amd: this.#healthByChance() }),
      () => (this.#heldPart = random.pick([0, 0, 1, 2])),
      () => (this.#isKnown = !this.#isKnown),
      () => {
        this.#arm = random.pick(['ready', 'ready', 'full', 'absent']);
        this.#putNodes();
      },
      () => {
        for (const pod of this.#pods.values()) if (random.chance(0.5)) this.#delete(pod);
      },
      () => {
        this.leaders += 1;
        this.#reconciler = new RolloutReconciler(this.#leader, new PodCounts(this.#leader));
      },
      () => this.#change({ paused: random.chance(0.3) }),
      () => this.#change({ resumedAt: new Date(this.#now).toISOString(), aborted: false }),
      () => this.#change({ aborted: random.chance(0.3) }),
      () => this.#change({ steps: random.pick(stepLists) }),
    ];
    random.pick(all)();
  }

  #healthByChance(): Health {
    return this.#random.chance(0.7) ? 'fine' : this.#random.pick(healths);
  }

  #change(spec: object): void {
    const generation = (this.#rollout.metadata?.generation ?? 0) + 1;
    const metadata = { ...this.#rollout.metadata, generation };
    this.#rollout = { ...this.#rollout, metadata, spec: { ...this.#rollout.spec, ...spec } };
    this.#caches.rollouts.set('web', this.#rollout);
  }

  /** ReplicaSets, scheduler and kubelets. */
  async #pass(ms: number): Promise<void> {
    this.#now += ms;
    for (const pod of this.#pods.values()) {
      const isGone = pod.deletedAt !== undefined && this.#now - pod.deletedAt > 10 * second;
      if (isGone || (pod.node === 'arm' && this.#arm === 'absent')) {
        this.#pods.delete(pod.name);
        this.#put(pod.name, undefined);
      }
    }
    for (const [workload, wanted] of Object.entries(this.#replicas)) {
      const live = this.#live(workload);
      const cost = (pod: ModelPod): number =>
        Number(pod.annotations['controller.kubernetes.io/pod-deletion-cost'] ?? 0);
      for (const pod of live
        .toSorted((a, b) => cost(a) - cost(b))
        .slice(0, Math.max(0, live.length - wanted)))
        this.#delete(pod);
      for (let count = live.length; count < wanted; count += 1) await this.#create(workload);
    }
    for (const pod of this.#pods.values()) {
      const isScheduled = this.#schedule(pod);
      if (run(pod, this.#now, ms, this.#random) || isScheduled) this.#put(pod.name, pod);
    }
  }

  async #create(workload: string): Promise<void> {
    const name = `${workload}-${(this.#made += 1)}`;
    const newPods = this.#isKnown ? this.status?.newPods : undefined;
    const times = { createdAt: this.#now, scheduledAt: this.#now, changedAt: this.#now };
    const state = { ready: false, restarts: 0, annotations: {}, health: this.#health };
    const pod = { name, workload, ...times, ...state };
    const object = objectOf({ ...pod, side: undefined }) as unknown as Pod;
    const policy = { name: 'web', architecture: 'arm64', newPods: 'Choose' } as const;
    const side = newPods === 'Choose' ? await this.#shares.choose(object, policy) : newPods;
    this.#pods.set(name, { ...pod, side });
    this.#put(name, this.#pods.get(name));
  }

  /** @returns whether it changed */
  #schedule(pod: ModelPod): boolean {
    if (pod.node !== undefined) return false;
    const wanted = pod.side === undefined ? this.#random.pick(['amd', 'amd', 'arm'] as const) : undefined;
    const side = wanted ?? (pod.side === 'Target' ? 'arm' : 'amd');
    if (side === 'arm' && this.#arm !== 'ready') return false;
    pod.node = side;
    pod.scheduledAt = this.#now;
    pod.changedAt = this.#now;
    return true;
  }

  #delete(pod: ModelPod): void {
    pod.deletedAt ??= this.#now;
    this.#put(pod.name, pod);
  }

  #put(name: string, pod: ModelPod | undefined): void {
    const object = pod && objectOf(pod);
    this.#caches.runningPods.set(name, object && trimRunningPod(object, (each) => each));
    this.#caches.waitingPods.set(name, object && trimWaitingPod(object, (each) => each));
  }

  #putNodes(): void {
    for (const name of ['amd', 'arm']) {
      const node = { ...nodeOf(`${name}64`), spec: {} };
      const object = { ...node, metadata: { ...node.metadata, name: `${name}-1` } };
      const isThere = name === 'amd' || this.#arm !== 'absent';
      this.#caches.nodes.set(`${name}-1`, isThere ? trimNode(object, (each) => each) : undefined);
    }
  }

  #client(): KubeClient {
    const podAt = (path: string): ModelPod => {
      const pod = this.#pods.get(path.replace('/eviction', '').slice(podPath('').length));
      if (!pod) throw new KubeError('not-found', path, 'not found');
      return pod;
    };
    const used: Pick<KubeClient, 'get' | 'create' | 'patch'> = {
      get: async <T>(path: string) => objectOf(podAt(path)) as T,
      create: async <T>(path: string) => {
        const pod = podAt(path);
        checkEviction(pod, [...this.#pods.values()], this.status?.newPods === 'Other');
        if (this.#isHeld(pod)) throw new KubeError('too-many-requests', path, 'the budget needs all pods');
        this.#delete(pod);
        return {} as T;
      },
      patch: async <T>(path: string, { body }: Patch) => {
        const change = body as { status: RolloutStatus; metadata: Pick<ModelPod, 'annotations'> };
        if (path === `${rolloutPath}/status`) {
          this.#rollout = { ...this.#rollout, status: change.status };
          this.#caches.rollouts.set('web', this.#rollout);
        } else {
          const pod = podAt(path);
          pod.annotations = { ...pod.annotations, ...change.metadata.annotations };
          this.#put(pod.name, pod);
        }
        return {} as T;
      },
    };
    return used as KubeClient;
  }
}
