/** Properties of every pod under `constraints: widen`, checked with an independent model of the scheduler. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import type { Pod, PodSpec } from '../../src/kube/api/objects.ts';
import type { PlacementInput } from '../../src/placement/decision.ts';
import { decide } from '../../src/placement/decide.ts';
import { patchGatedPod } from '../../src/placement/patch/patch.ts';
import type { NewPods } from '../../src/policy/effective/policy.ts';
import { hostileRecord, inputs, nodes } from '../support/arbitrary-pods.ts';
import { gatedUpdateFaults } from '../support/gated-model.ts';
import { applied, archIn, isIn, place, requiring, termOf } from '../support/placement-input.ts';
import { schedulingFaults, selects, tolerates } from '../support/scheduler-model.ts';

const runs = { numRuns: 300 };
const zone = isIn('zone', 'a');
const beta = 'beta.kubernetes.io/arch';

/** Constraints as charts write them. */
const named: fc.Arbitrary<Partial<PodSpec>> = fc.constantFrom<Partial<PodSpec>[]>(
  { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
  { nodeSelector: { [beta]: 'arm64', zone: 'b' } },
  { nodeSelector: { 'kubernetes.io/arch': 'amd64' }, ...requiring(termOf(zone)) },
  requiring(termOf(archIn('amd64'))),
  requiring(termOf(zone, archIn('arm64')), termOf(isIn(beta, 'arm64'))),
  requiring(termOf(archIn('amd64', 's390x'), zone)),
  requiring(termOf(archIn('amd64'), { key: beta, operator: 'NotIn', values: ['s390x'] })),
);

/** Random pods, half of them with known images and constraints as in charts. */
function widening(annotation = fc.constant<string | undefined>(undefined)): fc.Arbitrary<PlacementInput> {
  return fc.tuple(inputs(annotation), fc.option(named), fc.boolean()).map(([input, spec, isPlain]) => {
    const policy = { ...input.policy, constraints: 'widen' as const };
    if (spec === null) return { ...input, policy };
    const { nodeSelector: _, affinity: _affinity, ...others } = input.pod.spec;
    const containers = [{ name: 'web', image: 'web:1' }];
    const pod = isPlain
      ? { metadata: {}, spec: { containers, ...spec } }
      : { ...input.pod, spec: { ...others, ...spec } };
    return { ...input, policy, pod };
  });
}

function underKeep(input: PlacementInput): PlacementInput {
  return { ...input, policy: { ...input.policy, constraints: 'keep' } };
}

function nodesOf(pod: Pod): readonly string[] {
  return nodes.filter((node) => selects(pod.spec, node)).map(({ name }) => name);
}

test('a widened pod can land on each node that it has under `keep`, except those that cannot pull its images', async (t) => {
  let widened = 0;
  const property = fc.property(widening(fc.option(hostileRecord, { nil: undefined })), (input) => {
    const { pod, decision } = place(input);
    const kept = place(underKeep(input));
    if (decision.widened === undefined) {
      assert.deepEqual(pod.spec, kept.pod.spec, 'any other pod is placed as under `keep`');
      return;
    }
    widened += 1;
    for (const node of nodes) {
      if (decision.excludedNodes.includes(node.name)) continue;
      if (selects(kept.pod.spec, node)) assert.ok(selects(pod.spec, node), node.name);
      if (tolerates(kept.pod.spec.tolerations, node)) assert.ok(tolerates(pod.spec.tolerations, node));
    }
  });
  fc.assert(property, runs);
  t.ok(widened > 30, `${widened} pods were widened`);
});

test('a pod is widened only to architectures that all images have and the policy allows', async () => {
  const property = fc.property(widening(), (input) => {
    const { pod, decision } = place(input);
    if (decision.widened === undefined) return;
    const { allowed, schedulableArchitectures: schedulable } = input.policy;
    for (const { labels } of nodes.filter(
      (node) => selects(pod.spec, node) && !selects(input.pod.spec, node),
    )) {
      const architecture = labels['kubernetes.io/arch'] ?? '';
      for (const { image, unknown, facts, architectures } of decision.images) {
        assert.ok(facts !== undefined && unknown === undefined, image);
        assert.ok(architectures?.includes(architecture) ?? true, `${image} on ${architecture}`);
      }
      assert.ok(allowed?.architectures.includes(architecture) ?? true, architecture);
      assert.ok(schedulable.length === 0 || schedulable.includes(architecture), architecture);
    }
  });
  fc.assert(property, runs);
});

test('the patch applies, the pod stays valid, and a second call changes nothing', async () => {
  const property = fc.property(widening(fc.option(hostileRecord, { nil: undefined })), (input) => {
    const { pod, decision } = place(input);
    assert.deepEqual(schedulingFaults(pod.spec), schedulingFaults(input.pod.spec));
    const twice = place({ ...input, pod });
    assert.deepEqual(twice.patch, []);
    assert.equal(twice.decision.outcome, decision.outcome);
    assert.deepEqual(
      pod.spec.schedulingGates?.length ?? 0,
      place(underKeep(input)).pod.spec.schedulingGates?.length ?? 0,
    );
    for (const warning of decision.warnings) assert.ok(Buffer.byteLength(warning) <= 256);
  });
  fc.assert(property, runs);
});

test('in a rollout, a widened pod is narrowed to the chosen side', async (t) => {
  let chosen = 0;
  const property = fc.property(widening(), fc.constantFrom('Target', 'Other'), (input, newPods) => {
    const rollout = { name: 'web', architecture: 'arm64' };
    const inRollout = (how: NewPods, pod: Pod): PlacementInput => {
      return { ...input, pod, policy: { ...input.policy, rollout: { ...rollout, newPods: how } } };
    };
    const first = place(inRollout('Choose', input.pod));
    fc.pre(first.decision.widened !== undefined && first.decision.gate);
    const gated = { ...first.pod, metadata: { ...first.pod.metadata, resourceVersion: '7' } };
    const decision = decide({ ...inRollout(newPods, gated), waiting: true });
    assert.deepEqual(decision.widened, first.decision.widened);
    if (decision.rollout === undefined) return;
    chosen += 1;
    const pod = applied(gated, patchGatedPod(gated, decision));
    assert.deepEqual(gatedUpdateFaults(gated, pod), []);
    for (const { labels } of nodes.filter((node) => selects(pod.spec, node)))
      assert.equal(labels['kubernetes.io/arch'] === 'arm64', newPods === 'Target');
    const direct = place(inRollout(newPods, input.pod)).pod;
    assert.deepEqual(nodesOf(pod), nodesOf(direct), 'like a pod created after the choice');
  });
  fc.assert(property, runs);
  t.ok(chosen > 30, `${chosen} pods`);
});

test('under `keep`, a widened pod gets its original nodes back', async () => {
  const property = fc.property(widening(), (input) => {
    const first = place(input);
    fc.pre(first.decision.widened !== undefined);
    const back = place({ ...underKeep(input), pod: first.pod });
    const direct = place(underKeep(input));
    assert.deepEqual(nodesOf(back.pod), nodesOf(direct.pod));
    assert.deepEqual(back.pod.spec.tolerations ?? [], direct.pod.spec.tolerations ?? []);
    assert.equal(back.decision.outcome, direct.decision.outcome);
  });
  fc.assert(property, runs);
});
