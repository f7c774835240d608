/**
 * Every feature of the leader, in one cluster: whatever fails, and whoever is killed, the cluster comes to the
 * same end. `WALK_SEED` and `WALKS` choose the walks.
 */
import { steppingFeature } from '../../support/steps.ts';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { clean } from '../../../src/clean/clean.ts';
import type { CleanReport } from '../../../src/clean/run.ts';
import { runController } from '../../../src/controller/controller.ts';
import { features } from '../../../src/controller/features.ts';
import { createRequestOf } from '../../../src/images/facts/facts.ts';
import { defaultCacheTimes } from '../../support/facts.ts';
import { createKubeClient, type KubeClient } from '../../../src/kube/api/client.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createRandom, type Random } from '../../e2e/random.ts';
import { captureLog, seriesOf } from '../../support/captured.ts';
import { sized } from '../../support/exhaustive.ts';
import type { Fault } from '../../support/kube-store.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { createWalkCluster, type WalkCluster } from './cluster.ts';

const walks = Number(process.env['WALKS'] ?? sized(3, 30));
const firstSeed = Number(process.env['WALK_SEED'] ?? 1);

/** The cluster after every walk. */
const end = {
  known: 'placed: amd64 arm64',
  unknown: 'placed: arm64',
  never: 'allowed-unknown: arm64',
  nothing: 'pending: no-common-architecture',
  disabled: 'no record: ',
  own: 'own-constraint: ',
  'amd-1': 'true v3',
  'arm-1': 'true arch.example/architecture=arm64',
  'arm-2': 'arch.example/architecture=arm64',
  leaving: '',
  spare: 'true',
  'z-1': 'true',
  web: '2 on amd-1, 0 on arm-1',
  roll: 'Complete: 2 moved, 2 on amd-1, 2 on arm-1',
  broken: ['.amd64', '.amd64-v4'],
  drift: [['linux/arm64']],
  certificates: 'ca',
  webhook: 'pods.arch.example, secret path, trusted',
  requests: ['Approved DNS:amd-1.archwright-agent, DNS:archwright-agent', 'Denied', 'removed'],
  configs: [
    'Available True InForce, Degraded False AsWritten, Conflict False None',
    'Available True InForce, Degraded False AsWritten, Conflict True SamePriority',
    'Available False Invalid, Degraded True Invalid, Conflict False None',
  ],
  events: [
    'CpuLevelTooLow Pod/level',
    'CpuLevelTooLow ReplicaSet/web-1',
    'CredentialProblem DaemonSet/agents',
    'ExecFormatError Pod/broken',
    'ExecFormatError ReplicaSet/web-1',
    'ImageLostArchitecture Pod/tag',
    'TaintHeldBack DaemonSet/stubborn',
  ],
};

const endOfMetrics = {
  'archwright_running_pods{architecture="arm64"}': 5,
  'archwright_running_images{os="linux",architecture="arm64",variant="none"}': 1,
  archwright_agent_nodes: 4,
  archwright_agent_pools_uncovered: 0,
  archwright_broken_images: 1,
  archwright_images_with_cpu_level: 1,
  archwright_credential_problems: 1,
  'archwright_drift_tags{checked="yes"}': 3,
  archwright_misplaced_pods: 1,
  'archwright_rollouts{phase="Complete"}': 1,
  'archwright_taint_nodes{state="tainted"}': 2,
  'archwright_taint_nodes{state="waiting"}': 1,
  archwright_taint_pods_waiting: 0,
  'archwright_taint_blockers{reason="daemonsets"}': 1,
  'archwright_gated_pods{age="older",reason="lookup"}': 0,
  'archwright_webhook_configuration{state="in-force"}': 1,
};

/** One process of the controller. `kill` ends it without another request. */
function startReplica(t: Test, cluster: WalkCluster, identity: string, step: () => boolean) {
  const { store, clock, cache, fleet, webhooksFile } = cluster;
  const client = createKubeClient({ access: store.access, userAgent: identity });
  let isDead = false;
  const never = <T>(): Promise<T> => new Promise(() => undefined);
  const mortal: KubeClient = {
    ...client,
    get: (...args) => (isDead ? never() : client.get(...args)),
    create: (...args) => (isDead ? never() : client.create(...args)),
    patch: (...args) => (isDead ? never() : client.patch(...args)),
    delete: (...args) => (isDead ? never() : client.delete(...args)),
  };
  const stop = new AbortController();
  const metrics = createMetrics();
  const configuration = { ...defaultConfiguration(), ...cluster.configuration };
  const kill = (): void => {
    isDead = true;
    stop.abort(new Error('killed'));
  };
  const ended = runController({
    client: mortal,
    namespace: 'archwright',
    agentServiceAccount: 'archwright-agent',
    identity,
    configuration: () => configuration,
    features: features.map((feature) =>
      steppingFeature(feature, (name) => {
        if (name.includes(': after ') && step()) kill();
      }),
    ),
    webhooksFile,
    fleet,
    cache,
    requestOf: createRequestOf(defaultCacheTimes, false),
    clock,
    log: captureLog().log,
    metrics,
    stop: stop.signal,
  });
  t.teardown(async () => {
    stop.abort();
    await clock.advance(10_000);
    client.close();
  });
  return { kill, ended, metrics, isDead: () => isDead };
}

/**
 * Not of events, which are dropped after a few tries. A pod that is "not found" for all of its two minutes would
 * lose its gate without a placement.
 */
const faults: readonly (readonly [chance: number, fault: Fault, of?: RegExp])[] = [
  [0.1, { status: 409 }],
  [0.5, { status: 404, times: 8 }, /pods.(?:known|own)$/u],
  [0.5, { status: 500 }, /pods.never$/u],
  [0.5, { status: 429 }, /eviction$/u],
  [0.9, { status: 403 }, /^PATCH .*plain$/u],
  [0.1, { status: 403 }, /^(?:PATCH|POST) .*(?:nodes|secrets|configmaps|podplacementconfigs|eviction)/u],
  [0.05, { status: 500 }],
  [0.05, { status: 429, retryAfter: 1 }],
  [0.05, { reset: true }],
  [0.05, { lost: true }],
];

/** A leader that works in the cluster. `act` does all moves, and waits for the end. */
async function start(t: Test, random: Random, isFaulty: boolean) {
  const cluster = await createWalkCluster(t);
  const { clock, store } = cluster;
  let isCalm = !isFaulty;
  let replicas = 0;
  const steps = (): boolean => !isCalm && random.chance(0.02);
  const next = () => startReplica(t, cluster, `replica_${(replicas += 1)}`, steps);
  for (const [chance, fault, of = /./u] of faults)
    store.fault(
      ({ verb, path }) =>
        !isCalm &&
        of.test(`${verb} ${path}`) &&
        !path.endsWith('/events') &&
        verb !== 'WATCH' &&
        random.chance(chance),
      fault,
    );
  let replica = next();
  const pass = async (ms: number): Promise<void> => {
    cluster.live();
    await clock.advance(ms);
    await store.quiet();
    if (replica.isDead()) replica = next();
  };
  const act = async (all: readonly (() => void)[]): Promise<void> => {
    isCalm = !isFaulty;
    for (const move of random.some(all, all.length)) {
      move();
      if (!isCalm && random.chance(0.2)) store.cutWatches(random.pick(['end', 'reset']));
      if (!isCalm && random.chance(0.1)) store.compact();
      if (!isCalm && random.chance(0.2)) replica.kill();
      for (let count = random.below(8); count >= 0; count -= 1) await pass(random.below(4000));
    }
    isCalm = true;
    for (let count = 0; count < 360 && !isDeepStrictEqual(cluster.picture(), end); count += 1)
      await pass(10_000);
    t.strictSame(cluster.picture(), end);
    // Metrics and annotations follow within two minutes.
    for (let count = 0; count < 12; count += 1) await pass(10_000);
  };
  return { cluster, act, pass, replica: () => replica };
}

/** Runs `archwright clean`, against a leader that works. */
async function cleaned(
  t: Test,
  { store, clock, configuration }: WalkCluster,
  pass: (ms: number) => Promise<void>,
) {
  const client = createKubeClient({ access: store.access, userAgent: 'clean' });
  t.teardown(() => client.close());
  let report: CleanReport | undefined;
  void clean({
    client,
    namespace: 'archwright',
    configuration: { ...defaultConfiguration(), ...configuration },
    dryRun: false,
    restartPods: false,
    progress: () => undefined,
    signal: neverAborted,
    clock,
  }).then((end) => (report = end));
  for (let count = 0; count < 60; count += 1) await pass(1000);
  t.strictSame(
    report?.steps.flatMap(({ failures }) => failures),
    [],
  );
  for (const kind of ['secrets', 'configmaps', 'leases'])
    t.strictSame(
      store.list(
        `/${kind === 'leases' ? 'apis/coordination.k8s.io' : 'api'}/v1/namespaces/archwright/${kind}`,
      ),
      [],
      kind,
    );
  t.strictSame(store.list(paths.mutatingWebhookConfigurations()), []);
  t.strictSame(store.list(paths.certificateSigningRequests()), []);
  t.notMatch(JSON.stringify(store.list(paths.nodes())), /arch\.example/);
  t.notMatch(JSON.stringify(store.list(paths.pods())), /scheduling-gate/);
}

for (let seed = firstSeed; seed < firstSeed + walks; seed += 1) {
  // The first has no faults.
  t.test(`walk ${seed}`, async (t) => {
    const { cluster, act, pass, replica } = await start(t, createRandom(seed), seed !== firstSeed);
    const { store, moves, damage, picture, untolerated } = cluster;
    await act(moves);
    await act(damage);
    const { length: before } = store.writes();
    for (let count = 0; count < 30; count += 1) await pass(10_000);
    const later = store
      .writes()
      .slice(before)
      .map(({ verb, path }) => `${verb} ${path}`);
    t.strictSame(
      later.filter((each) => !/leases|events/u.test(each)),
      [],
      'nothing is left to do',
    );
    t.strictSame(picture(), end);
    t.strictSame(untolerated, []);
    const { metrics } = replica();
    const shown = Object.keys(endOfMetrics).map(
      async (name) => [name, await seriesOf(metrics, name)] as const,
    );
    t.strictSame(Object.fromEntries(await Promise.all(shown)), endOfMetrics);
    await cleaned(t, cluster, pass);
    t.equal(await replica().ended, 'cleaned', 'the controller does nothing from now on');
  });
}
