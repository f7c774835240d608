/** The steps of a placement, and that webhook, `explain` and gates decide alike. */
import * as fc from 'fast-check';
import t from 'tap';
import { createExplainer } from '../../cmd/explain/explainer.ts';
import { creationOf } from '../../cmd/objects/input.ts';
import { systemClock } from '../../src/async/clock.ts';
import { createFactsOfPod, type PodFactsRequest } from '../../src/cluster/facts-of-pod.ts';
import { placementOf, type PlacementSources } from '../../src/cluster/placement-of-pod.ts';
import { createPullableNodes } from '../../src/cluster/pullable-nodes.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { carriesGate } from '../../src/controller/state/waiting-pods.ts';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import type { Pod } from '../../src/kube/api/objects.ts';
import { uncheckedRecord } from '../../src/placement/record/read.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { bindCounters } from '../../src/webhook/metrics.ts';
import { Mutator } from '../../src/webhook/mutate.ts';
import { gate, path, startGates } from '../controller/features/gates/support.ts';
import { inputs, knownImages, nodes } from '../support/arbitrary-pods.ts';
import { silentLog } from '../support/captured.ts';
import { sized } from '../support/exhaustive.ts';
import { defaultCacheTimes, digestOf } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { defaultPolicy, facts, factsFrom, failed, podOf } from '../support/placement-input.ts';

/** Of one image: the nodes of zone `a` can pull it, those of zone `b` cannot. */
const fleet: Pick<Fleet, 'pullable'> = {
  pullable: ({ image }) => {
    const inZone = (zone: string) => ({
      fingerprint: zone,
      name: zone,
      nodes: nodes.filter(({ labels }) => labels['zone'] === zone).map(({ name }) => name),
      architectures: ['amd64', 'arm64', 's390x'],
    });
    const isKnown = image === 'sidecar:1';
    return Promise.resolve(
      isKnown ? { able: [inZone('a')], unable: [inZone('b')] } : { able: [], unable: [] },
    );
  },
};

function sourcesOf(policies: PlacementSources['policies']): PlacementSources {
  const metrics = createMetrics();
  const clock = systemClock;
  const cache = new FactsCache({
    source: {
      lookup: ({ image }) => {
        const known = factsFrom(knownImages)(image) ?? failed('unavailable');
        return Promise.resolve({ ...known, image, ...(!known.error && { digest: digestOf(image) }) });
      },
    },
    log: silentLog,
  });
  const requestOf = createRequestOf(defaultCacheTimes, false);
  const pullSecrets = createPullSecrets({ cluster: undefined, keepMs: 0, clock, metrics });
  const common = { requestOf, pullSecrets, clock, log: silentLog };
  return {
    policies,
    namespaceLabels: () => ({}),
    factsOfPod: createFactsOfPod({ ...common, cache }),
    pullableNodes: createPullableNodes({ ...common, fleet, nodeHostnames: (node) => [node] }),
    clock,
  };
}

const count = sized(100, 1000);

t.test(`webhook, explain and gates decide ${count} random pods alike`, async (t) => {
  const cases = fc.sample(inputs(), { numRuns: count, seed: 20_261_124 }).map(({ pod, policy }, index) => {
    const { schedulingGates: _, ...spec } = pod.spec;
    const name = `pod-${index}`;
    const labels = { ...pod.metadata?.labels, case: `${index}` };
    // With node labels by architecture, a gated pod gets fewer architectures: its terms cannot be split.
    return {
      name,
      policy: { ...policy, architectures: {} },
      pod: { ...pod, metadata: { name, namespace: 'shop', labels }, spec },
    };
  });
  const sources = sourcesOf({
    policyOf: ({ labels }) => cases[Number(labels?.['case'])]?.policy ?? defaultPolicy,
  });
  const mutator = new Mutator({ sources, counters: bindCounters(createMetrics()), log: silentLog });
  const { factsOfPod, pullableNodes, policies } = sources;
  const explain = createExplainer({
    factsOfPod,
    pullableNodes,
    policies,
    nodes: undefined,
    brokenNotes: [],
    budgetMs: 1000,
    podContext: {
      namespaceLabels: () => Promise.resolve({}),
      nodeArchitecture: () => Promise.resolve(undefined),
      read: () => Promise.resolve(undefined),
      secret: () => Promise.resolve(undefined),
      serviceAccountPullSecrets: () => Promise.resolve([]),
    },
    stop: neverAborted,
  });
  const expected = new Map<string, string>();
  for (const { name, pod } of cases) {
    const request = creationOf(pod, 'Pod', 'shop');
    const { outcome } = await explain({ kind: 'Pod', name, namespace: 'shop', place: '', request });
    if (!('decision' in outcome)) throw new Error(outcome.error);
    const { decision } = outcome;
    const { allowed, patch = '' } = await mutator.mutate(request, 1000);
    const about = JSON.stringify(pod);
    t.equal(allowed, decision.outcome !== 'denied', about);
    const operations = patch === '' ? [] : (JSON.parse(Buffer.from(patch, 'base64').toString()) as unknown);
    if (allowed) t.strictSame(operations, outcome.patch, about);
    // A gated pod waits for unknown images under any policy.
    const isGated = decision.reasons.some(({ rule }) => rule.startsWith('unknown-image-'));
    expected.set(name, isGated ? 'gated' : (decision.required?.join() ?? 'any'));
  }
  t.ok(new Set(expected.values()).size > 6, 'many different decisions');

  const waiting = cases.map(({ name, pod: { metadata, spec } }): Pod => {
    const creationTimestamp = '2026-11-01T00:00:00Z';
    return {
      metadata: { ...metadata, uid: name, creationTimestamp },
      spec: { ...spec, schedulingGates: [gate] },
    };
  });
  const gates = await startGates(t, waiting, {
    change: (leader) => ({ ...leader, factsOfPod, policies, fleet: fleet as Fleet }),
  });
  await gates.opened([...expected.values()].filter((outcome) => outcome !== 'gated').length);
  for (const { name, pod } of cases) {
    const now = gates.store.get(path(name)) as Pod;
    const { architectures } = uncheckedRecord(now);
    const found = carriesGate(now) ? 'gated' : (architectures?.join() ?? 'any');
    t.equal(found, expected.get(name), JSON.stringify(pod));
  }
});

const target = { pod: podOf(['app:1']), namespace: 'shop', pullSecrets: { names: [] } };

t.test('all steps share one time budget', async (t) => {
  const clock = createFakeClock();
  const budgets: [step: string, budgetMs: number][] = [];
  const known = new Map([['app:1', facts('amd64')]]);
  const policy = { ...defaultPolicy, requirePullableNodes: true, schedulableArchitectures: ['arm64'] };
  const { decision } = await placementOf(
    target,
    {
      policies: { policyOf: () => policy },
      namespaceLabels: () => ({}),
      factsOfPod: async ({ budgetMs, maxAgeMs }: PodFactsRequest) => {
        budgets.push([maxAgeMs === undefined ? 'facts' : `facts of ${maxAgeMs} ms`, budgetMs]);
        await clock.advance(100);
        return known;
      },
      pullableNodes: async ({ budgetMs }) => {
        budgets.push(['nodes', budgetMs]);
        await clock.advance(60);
        return new Map();
      },
      clock,
    },
    { budgetMs: 150 },
  );
  t.equal(decision.outcome, 'denied');
  t.strictSame(budgets, [
    ['facts', 150],
    ['nodes', 50],
    ['facts of 5000 ms', 1],
  ]);
});

t.test('the policy that applies after the lookups decides', async (t) => {
  let agentsAnswer = true;
  const { decision } = await placementOf(
    target,
    {
      policies: { policyOf: () => ({ ...defaultPolicy, onUnknownImage: agentsAnswer ? 'gate' : 'allow' }) },
      namespaceLabels: () => ({}),
      factsOfPod: () => {
        agentsAnswer = false;
        return Promise.resolve(new Map());
      },
      clock: systemClock,
    },
    { budgetMs: 1 },
  );
  t.equal(decision.outcome, 'allowed-unknown');
});

t.test('facts of a skipped pod are looked up only to warn a person', async (t) => {
  const looked: boolean[] = [];
  const factsOfPod = () => {
    looked.push(true);
    return Promise.resolve(new Map([['app:1', facts('arm64')]]));
  };
  const sources = { factsOfPod, policies: { policyOf: () => defaultPolicy }, namespaceLabels: () => ({}) };
  const pod = podOf(['app:1'], { nodeName: 'n1' });
  for (const [isForPerson, architecture, count] of [
    [false, 'amd64', 0],
    [true, undefined, 0],
    [true, 'amd64', 1],
  ] as const) {
    const nodeArchitecture = () => architecture;
    const all = { ...sources, nodeArchitecture, clock: systemClock };
    await placementOf({ ...target, pod, isForPerson }, all, { budgetMs: 1 });
    t.equal(looked.length, count);
  }
});
