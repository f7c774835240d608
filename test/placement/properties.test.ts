/** Properties of every pod, also with forged records. `decide.test.ts` judges where pods can land. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import type { NodeSelectorTerm, Pod } from '../../src/kube/api/objects.ts';
import { keys } from '../../src/names/keys.ts';
import { decide } from '../../src/placement/decide.ts';
import { skipReasons, type PlacementInput } from '../../src/placement/decision.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { describeRule, rules } from '../../src/placement/rules/rules.ts';
import { hostileRecord, inputs, knownImages, nodes, userToleration } from '../support/arbitrary-pods.ts';
import { factsFrom, isIn, place, requiring, termOf, termsOf } from '../support/placement-input.ts';
import { schedulingFaults, selects } from '../support/scheduler-model.ts';

const runs = { numRuns: 300 };
const anyRecord = fc.option(hostileRecord, { nil: undefined });

function requiredTerms(pod: Pod): readonly NodeSelectorTerm[] {
  return termsOf(pod) ?? [];
}

test('whatever its annotations, a pod keeps what its author wrote, and a second call changes nothing', async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const before = input.pod;
    const text = JSON.stringify(before);
    const { pod, decision, patch } = place(input);
    const copy: PlacementInput = { ...input, pod: structuredClone(before) };
    const again = decide(copy);
    const bytes = JSON.stringify([decision, patch]);
    assert.equal(
      JSON.stringify([again, patchPod(copy.pod, again)]),
      bytes,
      'the same input gives the same bytes',
    );
    assert.equal(JSON.stringify(before), text, 'the input is not changed');
    for (const node of nodes)
      assert.ok(!selects(pod.spec, node) || selects(before.spec, node), `${node.name} was excluded`);
    assert.deepEqual(schedulingFaults(pod.spec), schedulingFaults(before.spec));
    for (const warning of decision.warnings) assert.ok(Buffer.byteLength(warning) <= 256);
    assert.ok(decision.reasons.length > 0 && decision.reasons.every(({ message }) => message !== ''));
    const twice = place({ ...input, pod });
    assert.deepEqual(twice.patch, [], 'the second patch is empty');
    assert.equal(twice.decision.outcome, decision.outcome);
    assertOwnFields(before, pod);
  });
  fc.assert(property, runs);
});

function assertOwnFields(before: Pod, pod: Pod): void {
  const { [keys.placementState]: _, ...labels } = pod.metadata?.labels ?? {};
  assert.deepEqual(labels, before.metadata?.labels ?? {});
  assert.deepEqual(pod.spec.containers, before.spec.containers);
  const tolerations = before.spec.tolerations ?? [];
  assert.deepEqual((pod.spec.tolerations ?? []).slice(0, tolerations.length), tolerations);
  const texts = requiredTerms(pod).map((term) => JSON.stringify(term.matchExpressions ?? []).slice(0, -1));
  for (const term of requiredTerms(before)) {
    const own = JSON.stringify(term.matchExpressions ?? []).slice(0, -1);
    assert.ok(texts.some((text) => text.startsWith(own)));
  }
  const others = (gates: Pod['spec']['schedulingGates']): unknown =>
    gates?.filter(({ name }) => name === 'x/y') ?? [];
  assert.deepEqual(others(pod.spec.schedulingGates), others(before.spec.schedulingGates));
}

test('additions are replaced: a call before an edit does not change the result', async () => {
  interface Edit {
    readonly name: string;
    readonly apply: (pod: Pod) => Pod;
  }
  const newTerm = termOf(isIn('zone', 'b'));
  const inSpec = (spec: (before: Pod['spec']) => Partial<Pod['spec']>) => (pod: Pod) => ({
    ...pod,
    spec: { ...pod.spec, ...spec(pod.spec) },
  });
  const edits: fc.Arbitrary<Edit> = fc.oneof(
    fc.constantFrom('web:1', 'legacy:1', 'sidecar:1', 'new:1', 'artifact:1').map((image) => ({
      name: `container ${image}`,
      apply: inSpec(({ containers }) => ({ containers: [...containers, { name: 'added', image }] })),
    })),
    userToleration
      .filter(({ key }) => key === 'gpu')
      .map((toleration) => ({
        name: `toleration ${JSON.stringify(toleration)}`,
        apply: inSpec(({ tolerations = [] }) => ({ tolerations: [...tolerations, toleration] })),
      })),
    fc.constant({
      name: 'a new first term',
      apply: (pod: Pod) => {
        const { nodeAffinity } = requiring(newTerm, ...requiredTerms(pod)).affinity ?? {};
        return inSpec(({ affinity }) => ({
          affinity: { ...affinity, nodeAffinity: { ...affinity?.nodeAffinity, ...nodeAffinity } },
        }))(pod);
      },
    }),
    fc.constantFrom('a', 'b').map((zone) => ({
      name: `label zone=${zone}`,
      apply: (pod: Pod) => ({
        ...pod,
        metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, zone } },
      }),
    })),
  );
  const property = fc.property(inputs(), edits, fc.boolean(), (input, edit, learned) => {
    const first = place(input);
    // A refused pod is not submitted again.
    fc.pre(first.decision.outcome !== 'denied');
    const later = learned
      ? factsFrom({ ...knownImages, 'new:1': 'amd64 arm64', 'missing:1': 'arm64 amd64' })
      : input.facts;
    const edited = place({ ...input, pod: edit.apply(first.pod), facts: later });
    const direct = place({ ...input, pod: edit.apply(input.pod), facts: later });
    fc.pre(direct.decision.outcome !== 'denied');
    assert.deepEqual(scheduling(edited.pod), scheduling(direct.pod), edit.name);
  });
  fc.assert(property, runs);
});

function scheduling(pod: Pod): unknown {
  const affinity = pod.spec.affinity?.nodeAffinity;
  return {
    nodeSelector: pod.spec.nodeSelector ?? {},
    required: affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms?.map(
      ({ matchExpressions = [], matchFields = [] }) => ({ matchExpressions, matchFields }),
    ),
    preferred: (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      .map((term) => JSON.stringify(term))
      .sort(),
    tolerations: (pod.spec.tolerations ?? []).map((toleration) => JSON.stringify(toleration)).sort(),
    gates: (pod.spec.schedulingGates ?? []).map(({ name }) => name).sort(),
    record: pod.metadata?.annotations?.['arch.example/decision'],
  };
}

test('each rule has a name in kebab-case and a description of one line', async (t) => {
  for (const [rule, description] of Object.entries(rules)) {
    t.match(rule, /^[a-z]+(?:-[a-z]+)*$/u);
    t.match(description, /^[^\n]{10,140}\.$/u);
    t.equal(describeRule(rule), description);
  }
  t.equal(describeRule('no-such-rule'), '');
  for (const skip of skipReasons) t.ok(describeRule(`skip-${skip}`), skip);
});
