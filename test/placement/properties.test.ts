/** Properties of every pod, checked with an independent model of the scheduler. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import type { NodeSelectorTerm, Pod } from '../../src/kube/api/objects.ts';
import { decide } from '../../src/placement/decide.ts';
import { keys } from '../../src/names/keys.ts';
import type { PlacementInput } from '../../src/placement/decision.ts';
import { patchPod } from '../../src/placement/patch/patch.ts';
import { hostileRecord, inputs, knownImages, nodes, userToleration } from '../support/arbitrary-pods.ts';
import { factsFrom, isIn, place, requiring, termOf, termsOf } from '../support/placement-input.ts';
import { chosenByPerson, schedulingFaults, selects, tolerates } from '../support/scheduler-model.ts';

const runs = { numRuns: 300 };
const anyRecord = fc.option(hostileRecord, { nil: undefined });

function requiredTerms(pod: Pod): readonly NodeSelectorTerm[] {
  return termsOf(pod) ?? [];
}

test('a pod never lands on a node that it excluded itself, whatever its annotations', async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const { pod } = place(input);
    return nodes.every((node) => !selects(pod.spec, node) || selects(input.pod.spec, node));
  });
  fc.assert(property, runs);
});

test('a pod never lands on an architecture that a known image lacks, unless its author chose it', async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const { pod, decision } = place(input);
    if (decision.reasons.some(({ rule }) => rule === 'no-common-architecture-allow')) return true;
    if (decision.outcome === 'denied' || decision.outcome === 'skipped') return true;
    return nodes
      .filter((node) => selects(pod.spec, node) && !chosenByPerson(input.pod, node))
      .every((node) =>
        decision.images.every(
          ({ architectures }) => architectures?.includes(node.labels['kubernetes.io/arch'] ?? '') ?? true,
        ),
      );
  });
  fc.assert(property, runs);
});

test('a pod never lands on an architecture that a custom resource does not allow, unless its author chose it', async (t) => {
  let bounded = 0;
  const property = fc.property(inputs(anyRecord), (input) => {
    const { allowed } = input.policy;
    if (allowed === undefined) return true;
    const { pod, decision } = place(input);
    if (decision.reasons.some(({ rule }) => rule === 'no-common-architecture-allow')) return true;
    if (decision.outcome === 'denied' || decision.outcome === 'skipped') return true;
    bounded += 1;
    return nodes
      .filter((node) => selects(pod.spec, node) && !chosenByPerson(input.pod, node))
      .every(({ labels }) => allowed.architectures.includes(labels['kubernetes.io/arch'] ?? ''));
  });
  fc.assert(property, runs);
  t.ok(bounded > 50, `${bounded} pods were restricted`);
});

test('an added toleration is for an architecture that all known images have', async () => {
  const property = fc.property(inputs(), (input) => {
    // `arch Exists` for amd64 tolerates every architecture's taint, as such a policy intends.
    fc.pre(!Object.hasOwn(input.policy.architectures, 'amd64'));
    const { pod, decision } = place(input);
    return nodes
      .filter((node) => tolerates(pod.spec.tolerations, node) && !tolerates(input.pod.spec.tolerations, node))
      .every((node) =>
        decision.images.every(
          ({ architectures }) => architectures?.includes(node.labels['kubernetes.io/arch'] ?? '') ?? true,
        ),
      );
  });
  fc.assert(property, runs);
});

test('a pod never lands on a node that cannot pull one of its images, if others can', async (t) => {
  let restricted = 0;
  const property = fc.property(inputs(anyRecord), (input) => {
    const { pod, decision } = place(input);
    const isExcluding = decision.reasons.some(({ rule }) => rule === 'pullable-nodes');
    assert.equal(decision.excludedNodes.length > 0, isExcluding);
    if (!isExcluding) return;
    restricted += 1;
    assert.ok(input.policy.requirePullableNodes);
    const known = decision.images.flatMap(({ image }) => input.pullability?.(image) ?? []);
    const unable = new Set(
      known
        .filter(({ able }) => able.length > 0)
        .flatMap((each) => each.unable.flatMap(({ hostnames }) => hostnames)),
    );
    for (const node of nodes) if (unable.has(node.name)) assert.ok(!selects(pod.spec, node), node.name);
    const possible = known.flatMap(({ able }) => able.flatMap(({ hostnames }) => hostnames));
    assert.ok(
      possible.some((name) => !unable.has(name)),
      'nodes that can pull remain',
    );
  });
  fc.assert(property, runs);
  t.ok(restricted > 5, `${restricted} pods had excluded nodes`);
});

test('a second call changes nothing', async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const once = place(input);
    const twice = place({ ...input, pod: once.pod });
    assert.deepEqual(twice.patch, [], 'the second patch is empty');
    assert.equal(twice.decision.outcome, once.decision.outcome);
  });
  fc.assert(property, runs);
});

test("the pod's own fields stay", async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const { pod } = place(input);
    const before = input.pod;
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
  });
  fc.assert(property, runs);
});

test('a valid pod stays valid, and the decision is bounded', async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const { pod, decision } = place(input);
    assert.deepEqual(schedulingFaults(pod.spec), schedulingFaults(input.pod.spec));
    for (const warning of decision.warnings) assert.ok(Buffer.byteLength(warning) <= 256);
  });
  fc.assert(property, runs);
});

test('the same input gives the same bytes, and the input is not changed', async () => {
  const property = fc.property(inputs(anyRecord), (input) => {
    const before = JSON.stringify(input.pod);
    const first = JSON.stringify([decide(input), patchPod(input.pod, decide(input))]);
    const copy: PlacementInput = { ...input, pod: structuredClone(input.pod) };
    assert.equal(JSON.stringify([decide(copy), patchPod(copy.pod, decide(copy))]), first);
    assert.equal(JSON.stringify(input.pod), before);
  });
  fc.assert(property, runs);
});

test('additions are replaced: a call before an edit does not change the result', async () => {
  interface Edit {
    readonly name: string;
    readonly apply: (pod: Pod) => Pod;
  }
  const newTerm = termOf(isIn('zone', 'b'));
  const edits = fc.oneof(
    fc.constantFrom('web:1', 'legacy:1', 'sidecar:1', 'new:1', 'artifact:1').map((image): Edit => ({
      name: `container ${image}`,
      apply: (pod) => ({
        ...pod,
        spec: { ...pod.spec, containers: [...pod.spec.containers, { name: 'added', image }] },
      }),
    })),
    userToleration
      .filter(({ key }) => key === 'gpu')
      .map((toleration): Edit => ({
        name: `toleration ${JSON.stringify(toleration)}`,
        apply: (pod) => ({
          ...pod,
          spec: { ...pod.spec, tolerations: [...(pod.spec.tolerations ?? []), toleration] },
        }),
      })),
    fc.constant<Edit>({
      name: 'a new first term',
      apply: (pod) => ({
        ...pod,
        spec: {
          ...pod.spec,
          affinity: {
            ...pod.spec.affinity,
            nodeAffinity: {
              ...pod.spec.affinity?.nodeAffinity,
              ...requiring(newTerm, ...requiredTerms(pod)).affinity?.nodeAffinity,
            },
          },
        },
      }),
    }),
    fc.constantFrom('a', 'b').map((zone): Edit => ({
      name: `label zone=${zone}`,
      apply: (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, zone } } }),
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
