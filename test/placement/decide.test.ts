/** Random pods, placed and judged: each can land on exactly the nodes that the judge names. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import { classify } from '../../src/nodes/classify.ts';
import { groupByClass } from '../../src/nodes/node-classes.ts';
import { decide } from '../../src/placement/decide.ts';
import type { NodeGroup, PlacementInput } from '../../src/placement/decision.ts';
import { patchGatedPod } from '../../src/placement/patch/patch.ts';
import { loadConfiguration } from '../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../src/policy/effective/policies.ts';
import type { Policy } from '../../src/policy/effective/policy.ts';
import type { Pod } from '../../src/kube/api/objects.ts';
import { nodeToCreate, type NodeObject } from '../e2e/cluster/control-plane/nodes.ts';
import { createRandom } from '../e2e/random.ts';
import { hostileRecord } from '../support/arbitrary-pods.ts';
import { sized } from '../support/exhaustive.ts';
import { gatedUpdateFaults } from '../support/gated-model.ts';
import { generateCase, generateChartCase, generatePolicy, type Case } from '../support/judge/generate.ts';
import { judge, type Judgement, type Stage } from '../support/judge/judge.ts';
import { modelNodes } from '../support/judge/model.ts';
import { isIndex } from '../support/judge/runtimes.ts';
import { credentialGroups, images, nodes, policies, type ModelPolicy } from '../support/judge/world.ts';
import {
  applied,
  facts,
  failed,
  factsFrom,
  inputOf,
  place,
  seal,
  type Known,
} from '../support/placement-input.ts';
import { schedulingFaults, selects, tolerates } from '../support/scheduler-model.ts';

const classes = groupByClass(
  nodes.flatMap((node) => classify(nodeToCreate(node) as NodeObject) ?? []),
  new Map(),
);

/** By name of the model's policy. */
const configured = new Map(
  await Promise.all(
    policies.map(async ({ name, settings }) => {
      const flags = Object.fromEntries(Object.entries(settings).map(([flag, text]) => [keyOf(flag), text]));
      const { configuration, problems } = await loadConfiguration({ env: {}, flags });
      if (configuration === undefined) throw new Error(JSON.stringify(problems));
      return [name, policyFor(configuration)] as const;
    }),
  ),
);

/** `on-unknown-image` → `onUnknownImage` */
function keyOf(flag: string): string {
  return flag.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

function policyOf(model: ModelPolicy): Partial<Policy> {
  const { schedulable = [], allowed, rollout } = model;
  return {
    ...configured.get(model.name),
    schedulableArchitectures: schedulable,
    ...(allowed && { allowed: { architectures: allowed, origin: 'PodPlacementConfig shop/web' } }),
    onUnknownImage: model.onUnknown ?? 'gate',
    onNoCommonArchitecture: model.onNoCommon ?? 'deny',
    requirePullableNodes: model.pulls !== undefined,
    constraints: model.widens === true ? 'widen' : 'keep',
    ...(rollout && { rollout: { name: 'web', ...rollout } }),
  };
}

/** What is known of the images when a pod is created, and later. */
function knownAt(stage: Stage): Known {
  const known = images.map((image) => {
    const { repository, platforms, knowledge } = image;
    if (knowledge === 'never') return [repository, failed('unavailable')] as const;
    const mediaType = `application/vnd.oci.image.${isIndex(image) ? 'index' : 'manifest'}.v1+json`;
    return knowledge === 'at once' || stage === 'waiting'
      ? ([repository, facts(platforms.map(fullName).join(' '), { mediaType })] as const)
      : undefined;
  });
  return Object.fromEntries(known.filter((each) => each !== undefined));
}

function fullName(platform: string): string {
  return /^(?:linux|windows)\//.test(platform) || !platform.includes('/') ? platform : `linux/${platform}`;
}

const knownFacts = {
  creation: factsFrom(knownAt('creation')),
  DaemonSet: factsFrom(knownAt('DaemonSet')),
  waiting: factsFrom(knownAt('waiting')),
};

function groupsThat(says: Readonly<Record<string, boolean>>, can: boolean): readonly NodeGroup[] {
  return credentialGroups
    .filter(({ name }) => says[name] === can)
    .map(({ name, members }) => ({
      fingerprint: name,
      hostnames: members.map((node) => node.name),
      architectures: [...new Set(members.map(({ architecture }) => architecture))],
    }));
}

function inputAt(stage: Stage, pod: Pod, model: ModelPolicy): PlacementInput {
  return inputOf(pod, {}, policyOf(model), {
    nodes: classes,
    facts: knownFacts[stage],
    seal,
    ...(model.pulls && {
      pullability: (image) => {
        const says = model.pulls?.[image] ?? {};
        return { able: groupsThat(says, true), unable: groupsThat(says, false) };
      },
    }),
    ...(stage === 'waiting' && { waiting: true }),
    ...(stage === 'DaemonSet' && { template: stage }),
  });
}

function compare(found: Pod, before: Pod, expected: Judgement): void {
  const lands = modelNodes
    .filter((node) => selects(found.spec, node) && tolerates(found.spec.tolerations, node))
    .map(({ name }) => name);
  if (expected.mayBeFewer)
    assert.deepEqual(
      lands.filter((name) => !expected.nodes.includes(name)),
      [],
      'nodes',
    );
  else assert.deepEqual(lands, expected.nodes, 'nodes');
  const preferred = found.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const own = before.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const weights = preferred
    .slice(own.length)
    .map(({ weight, preference }) => [preference.matchExpressions?.[0]?.values?.join(), weight] as const);
  assert.deepEqual(Object.fromEntries(weights), expected.preferred, 'preferences');
  assert.deepEqual(schedulingFaults(found.spec), schedulingFaults(before.spec));
}

interface Judged {
  readonly one: Case;
  readonly policy: ModelPolicy;
  /** Of an earlier call, in the same preference mode: a record of a pin does not count in mode `soft`. */
  readonly earlier: ModelPolicy;
  readonly stage: Exclude<Stage, 'waiting'>;
}

const judged: fc.Arbitrary<Judged> = fc
  .record({ seed: fc.integer(), stage: fc.constantFrom('creation', 'creation', 'creation', 'DaemonSet') })
  .map(({ seed, stage }) => {
    const random = createRandom(seed);
    const policy = generatePolicy(random);
    // A DaemonSet with an unknown image keeps what an earlier call recorded.
    const earlier = stage === 'DaemonSet' || random.chance(0.7) ? policy : generatePolicy(random, policy);
    const one = random.chance(0.7) ? generateCase(random, 0) : generateChartCase(random, 0);
    return { one, policy, earlier, stage };
  });

function check({ one, policy, earlier, stage }: Judged, record: string | undefined): Judgement {
  const annotations = {
    ...one.pod.metadata?.annotations,
    ...(record !== undefined && { 'arch.example/decision': record }),
  };
  const author = { ...one.pod, metadata: { ...one.pod.metadata, annotations } };
  const first = place(inputAt(stage, author, earlier));
  const start = first.decision.outcome === 'denied' ? author : first.pod;
  const { decision, pod } = place(inputAt(stage, start, policy));
  const expected = judge(one, policy, stage);
  const result = decision.outcome === 'denied' ? 'refused' : decision.gate ? 'gated' : 'admitted';
  assert.equal(result, expected.result);
  if (result === 'refused') return expected;
  assert.deepEqual(place(inputAt(stage, pod, policy)).patch, [], 'a second call changes nothing');
  if (result === 'admitted') {
    compare(pod, one.pod, expected);
    return expected;
  }
  // The controller chooses for a pod in a rollout, and removes the gate.
  const side = one.images.length % 2 === 0 ? 'Target' : 'Other';
  const { rollout, ...rest } = policy;
  const later: ModelPolicy = {
    ...rest,
    onUnknown: 'fallback',
    onNoCommon: policy.onNoCommon === 'allow' ? 'allow' : 'pend',
    ...(rollout && {
      rollout: { ...rollout, newPods: rollout.newPods === 'Choose' ? side : rollout.newPods },
    }),
  };
  const after = applied(pod, patchGatedPod(pod, decide(inputAt('waiting', pod, later))));
  assert.deepEqual(gatedUpdateFaults(pod, after), []);
  compare(after, one.pod, judge(one, later, 'waiting'));
  return expected;
}

test('a pod can land on exactly the nodes that its author, its images and the settings allow', async (t) => {
  const counts: Record<string, number> = {};
  const property = fc.property(
    judged,
    fc.option(hostileRecord, { nil: undefined, freq: 1 }),
    (one, record) => {
      const { result } = check(one, record);
      counts[result] = (counts[result] ?? 0) + 1;
    },
  );
  fc.assert(property, { numRuns: sized(2500, 50_000), endOnFailure: true });
  t.comment(JSON.stringify(counts));
  for (const result of ['admitted', 'gated', 'refused']) t.ok((counts[result] ?? 0) > 100, result);
});
