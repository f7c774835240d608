/**
 * What a leader passes to a feature, over an API server with a store. All of it is real, except for facts.
 */
import { join } from 'node:path';
import type { Test } from 'tap';
import type { FactsByImage, FactsOfPod, PodFactsRequest } from '../../src/cluster/facts-of-pod.ts';
import { noPullSecrets } from '../../src/cluster/pull-secrets.ts';
import type { RunningPod } from '../../src/controller/state/cached.ts';
import { startCaches, type Caches } from '../../src/controller/state/caches.ts';
import { liveWebhooks } from '../../src/controller/state/webhooks-file.ts';
import { createEvictor } from '../../src/controller/write/evictor.ts';
import type { Feature, LeaderContext } from '../../src/controller/lead/feature.ts';
import { runFeatures } from '../../src/controller/lead/runner.ts';
import { type ImageFacts, createRequestOf } from '../../src/images/facts/facts.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { defaultCacheTimes } from '../support/facts.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import type { Pod } from '../../src/kube/api/objects.ts';
import type { EventText, ObjectReference } from '../../src/kube/events/events.ts';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../src/policy/effective/policies.ts';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import { captureLog, seriesOf } from '../support/captured.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { startKubeStore, type KubeStore } from '../support/kube-store.ts';
import { steppingClient, type Step } from '../support/steps.ts';
import { neverAborted } from '../support/never-aborted.ts';

export type TestLeader = Awaited<ReturnType<typeof startLeader>>;

export interface TestLeaderOptions {
  readonly configuration?: Partial<Configuration> | undefined;
  readonly webhooksFile?: string | undefined;
  /** By image as the pod writes it. Other images are unknown. */
  readonly facts?: Readonly<Record<string, ImageFacts>>;
  /** Facts in the cache at the start. */
  readonly remembered?: readonly ImageFacts[];
  readonly fleet?: LeaderContext['fleet'];
  /** Closed by the test. Default: one with what is remembered. */
  readonly cache?: LeaderContext['cache'];
  /** Default: no pod has any. */
  readonly pullSecrets?: LeaderContext['pullSecrets'];
  /** Default: from `facts`. */
  readonly factsOfPod?: FactsOfPod;
  readonly step?: Step;
  readonly now?: () => number;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** The store of an earlier leader, which this one takes over. */
  readonly over?: KubeStore;
}

export async function startLeader(t: Test, options: TestLeaderOptions = {}) {
  const { clock = systemClock, now = clock.now } = options;
  const store = options.over ?? (await startKubeStore({ now, isPlain: true }));
  if (!options.over) t.teardown(() => store.close());
  const { log, lines } = captureLog('debug');
  const metrics = createMetrics();
  const kube = createKubeClient({ access: store.access, userAgent: 'test' });
  const steps: string[] = [];
  const client = steppingClient(kube, async (name) => {
    steps.push(name);
    await options.step?.(name);
  });
  const caches = startCaches({ client, log, metrics, clock: systemClock });
  const ending = new AbortController();
  const events: (EventText & { about: ObjectReference })[] = [];
  let configuration: Configuration = {
    ...defaultConfiguration(),
    namespace: 'archwright',
    ...options.configuration,
  };
  const { webhooksFile } = options;
  const webhooks = webhooksFile === undefined ? undefined : await liveWebhooks(webhooksFile, log);
  const cache = new FactsCache({
    source: { lookup: () => Promise.reject(new Error('no source in this test')) },
    log,
  });
  for (const facts of options.remembered ?? []) cache.learn(facts);
  const known = options.facts ?? {};
  // Facts of a tag answer for its digest too, as in the cache.
  const byDigest = (image: string) => Object.values(known).find(({ digest }) => image.endsWith(`@${digest}`));
  const scripted: FactsOfPod = ({ uses }) =>
    Promise.resolve(factsByImage(uses, (image) => known[image] ?? byDigest(image)));
  t.teardown(async () => {
    ending.abort(new Error('the test has ended'));
    caches.stop();
    await webhooks?.close();
    await cache.close();
    kube.close();
  });
  await caches.ready(neverAborted);
  const leader: LeaderContext = {
    namespace: 'archwright',
    agentServiceAccount: 'archwright-agent',
    signal: ending.signal,
    client,
    events: { record: (about, event) => void events.push({ ...event, about }) },
    caches,
    webhooks,
    fleet: options.fleet,
    cache: options.cache ?? cache,
    requestOf: createRequestOf(defaultCacheTimes, false),
    factsOfPod: options.factsOfPod ?? scripted,
    pullSecrets: options.pullSecrets ?? {
      mayHave: () => false,
      source: () => Promise.resolve(noPullSecrets),
    },
    policies: { policyOf: () => policyFor(configuration) },
    nodeClasses: () => undefined,
    rollouts: { choose: () => Promise.resolve('Other') },
    evict: createEvictor({ client, signal: ending.signal, clock, configuration: () => configuration }),
    configuration: () => configuration,
    clock,
    serverNow: now,
    log,
    metrics,
  };
  return {
    leader,
    store,
    events,
    /** Lines of the log. */
    lines,
    /** Names of the steps so far. */
    steps,
    series: (name: string) => seriesOf(metrics, name),
    /** Changes the configuration. */
    configure: (changes: Partial<Configuration>): void => {
      configuration = { ...configuration, ...changes };
    },
    settled: () => store.until(() => isSettled(store, caches), 'the caches'),
    /** Ends leadership. */
    depose: () => ending.abort(new Error('deposed')),
  };
}

/** Runs a feature as a leader does, until its signal aborts. */
export function lead(feature: Feature, leader: LeaderContext): Promise<void> {
  return runFeatures([feature], leader);
}

/** Runs a feature until the test ends. */
export function leadThroughout(t: Test, feature: Feature, test: Pick<TestLeader, 'leader' | 'depose'>): void {
  const ended = lead(feature, test.leader);
  t.teardown(async () => {
    test.depose();
    await ended;
  });
}

/** The facts of the known images. */
export function factsByImage(
  uses: PodFactsRequest['uses'],
  factsOf: (image: string) => ImageFacts | undefined,
): FactsByImage {
  const found = uses.map(({ image }) => [image, factsOf(image)] as const);
  return new Map(found.filter((entry): entry is [string, ImageFacts] => entry[1] !== undefined));
}

/** Writes a webhooks file for pods in namespaces that the selector matches. @returns its path */
export function webhooksFile(t: Test, namespaceSelector: object): string {
  const webhook = {
    name: 'pods.arch.example',
    clientConfig: { url: 'https://webhook.example/' },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    namespaceSelector,
  };
  return join(t.testdir({ 'webhooks.yaml': JSON.stringify({ webhooks: [webhook] }) }), 'webhooks.yaml');
}

/** A running pod as the cache keeps it, with defaults. */
export function runningPod(more: Partial<RunningPod> = {}): RunningPod {
  return {
    namespace: 'shop',
    name: 'web',
    uid: 'u',
    resourceVersion: '1',
    node: 'n1',
    os: 'linux',
    phase: 'Running',
    ready: true,
    readyChangedAt: 0,
    scheduledAt: 0,
    deleting: false,
    createdAt: 0,
    labels: undefined,
    annotations: undefined,
    owner: undefined,
    serviceAccountName: undefined,
    pullSecrets: [],
    images: [],
    claims: [],
    containers: [],
    tolerations: [],
    nodeChoice: undefined,
    staysTogether: false,
    ...more,
  };
}

function isSettled(store: KubeStore, { nodes, runningPods }: Caches): boolean {
  const running = store
    .list('/api/v1/pods')
    .filter(({ spec }) => (spec as Pod['spec'] | undefined)?.nodeName);
  const pairs = [
    { objects: store.list('/api/v1/nodes'), cache: nodes },
    { objects: running, cache: runningPods },
  ];
  return pairs.every(
    ({ objects, cache }) =>
      objects.length === cache.size &&
      objects.every(
        ({ metadata: { namespace = '', name, resourceVersion } }) =>
          cache.get(namespace, name)?.resourceVersion === resourceVersion,
      ),
  );
}
