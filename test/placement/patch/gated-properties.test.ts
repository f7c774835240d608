/**
 * Properties of every gated pod, checked with models of the API server and of the scheduler. `decide.test.ts`
 * judges where gated pods land.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import type { NodeSelectorTerm, Pod } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../../../src/placement/decision.ts';
import { isEmptyTerm, withExpressions } from '../../../src/placement/pod/terms.ts';
import { ownFieldsOf } from '../../../src/placement/record/own-fields.ts';
import { patchGatedPod } from '../../../src/placement/patch/patch.ts';
import { recordedIn } from '../../../src/placement/record/read.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { hostileRecord, inputs, knownImages, nodes } from '../../support/arbitrary-pods.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import {
  applied,
  factsFrom,
  isIn,
  place,
  requiring,
  termsOf,
  withLabels,
} from '../../support/placement-input.ts';
import { chosenByPerson, schedulingFaults, selects } from '../../support/scheduler-model.ts';

const runs = { numRuns: 500 };
const anyRecord = fc.option(hostileRecord, { nil: undefined });
const arch = 'kubernetes.io/arch';
const gate = { name: 'arch.example/scheduling-gate' };

/** Node labels that differ by architecture, and a pool that no node has. */
const architectures = fc.constantFrom<Policy['architectures']>(
  {},
  { arm64: withLabels({ pool: 'pool-arm64' }), amd64: withLabels({ pool: 'pool-amd64', zone: 'a' }) },
  {
    arm64: { taintsToTolerate: [{ key: 'arch', operator: 'Exists' }], requireNodeLabels: { zone: 'a' } },
    s390x: withLabels({ zone: 'a' }),
    constructor: withLabels({ zone: 'b' }),
  },
);

interface Story {
  readonly input: PlacementInput;
  /** The pod after admission. */
  readonly gated: Pod;
  readonly later: PlacementInput;
  readonly decision: PlacementDecision;
  readonly pod: Pod;
}

function withGate(pod: Pod): Pod {
  const gates = pod.spec.schedulingGates ?? [];
  const schedulingGates = gates.some(({ name }) => name === gate.name) ? gates : [...gates, gate];
  return {
    ...pod,
    metadata: { ...pod.metadata, resourceVersion: '7' },
    spec: { ...pod.spec, schedulingGates },
  };
}

/** The pod as the API server stores it: without empty fields. */
function stored(pod: Pod): Pod {
  return JSON.parse(
    JSON.stringify(pod, (key, value: unknown) =>
      (key === 'matchExpressions' || key === 'matchFields') && Array.isArray(value) && value.length === 0
        ? undefined
        : value,
    ),
  ) as Pod;
}

/** A pod is admitted with the facts of that time, waits, and is decided with later facts. */
const stories = (annotation: fc.Arbitrary<string | undefined>): fc.Arbitrary<Story> =>
  fc
    .record({
      first: inputs(annotation),
      architectures,
      learned: fc.constantFrom('amd64 arm64', 'arm64 constructor s390x', 's390x', undefined),
      bypassed: fc.boolean(),
      changed: fc.option(architectures, { nil: undefined }),
    })
    .map(({ first, architectures: rules, learned, bypassed, changed }) => {
      const policy = { ...first.policy, architectures: rules, onUnknownImage: 'gate' as const };
      const input = { ...first, pod: stored(first.pod), policy };
      const gated = stored(withGate(bypassed ? input.pod : place(input).pod));
      const { onNoCommonArchitecture } = policy;
      const later: PlacementInput = {
        ...input,
        pod: gated,
        waiting: true,
        facts: factsFrom(
          learned === undefined ? knownImages : { ...knownImages, 'new:1': learned, 'missing:1': 'amd64' },
        ),
        policy: {
          ...policy,
          ...(changed && { architectures: changed }),
          onUnknownImage: 'fallback',
          onNoCommonArchitecture: onNoCommonArchitecture === 'deny' ? 'pend' : onNoCommonArchitecture,
        },
      };
      const decision = decide(later);
      return { input, gated, later, decision, pod: applied(gated, patchGatedPod(gated, decision)) };
    });

/** Changes that the API server accepts in a gated pod, and an image or annotations that anyone may change. */
const edits = fc.oneof(
  fc
    .constantFrom(isIn('zone', 'a'), isIn(arch, 'amd64'), isIn(arch, 'arm64', 'amd64'), {
      key: arch,
      operator: 'NotIn',
      values: ['amd64'],
    })
    .map((expression) => (pod: Pod) => {
      const extended = (term: NodeSelectorTerm) =>
        isEmptyTerm(term) ? term : withExpressions(term, [expression]);
      const terms = termsOf(pod)?.map(extended) ?? [{ matchExpressions: [expression] }];
      const { nodeAffinity } = requiring(...terms).affinity ?? {};
      const affinity = {
        ...pod.spec.affinity,
        nodeAffinity: { ...pod.spec.affinity?.nodeAffinity, ...nodeAffinity },
      };
      return { ...pod, spec: { ...pod.spec, affinity } };
    }),
  fc.constantFrom('amd64', 'arm64', 's390x').map((name) => (pod: Pod) => ({
    ...pod,
    spec: { ...pod.spec, nodeSelector: { [arch]: name, ...pod.spec.nodeSelector } },
  })),
  fc.constantFrom('web:1', 'legacy:1', 'new:1').map((image) => (pod: Pod) => ({
    ...pod,
    spec: { ...pod.spec, containers: [{ name: 'changed', image }, ...pod.spec.containers.slice(1)] },
  })),
  fc.constant((pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, annotations: {} } })),
);

test('every patch is accepted and removes our gate; the pod never lands on a wrong node, whatever others changed', async (t) => {
  let several = 0;
  const changes = fc.array(edits, { maxLength: 3 });
  const property = fc.property(stories(anyRecord), changes, ({ later }, list) => {
    const before = stored(list.reduce((pod, edit) => edit(pod), later.pod as Pod));
    const decision = decide({ ...later, pod: before });
    const after = applied(before, patchGatedPod(before, decision));
    assert.deepEqual(gatedUpdateFaults(before, after), []);
    assert.deepEqual(schedulingFaults(after.spec), schedulingFaults(before.spec));
    assert.deepEqual(
      after.spec.schedulingGates ?? [],
      before.spec.schedulingGates?.filter(({ name }) => name !== gate.name),
    );
    assert.equal(after.metadata?.resourceVersion, '7');
    if (decision.outcome === 'skipped') return;
    if (Object.keys(decision.nodeLabelsByArchitecture).length > 1) several += 1;
    const isAllowed = decision.reasons.some(({ rule }) => rule === 'no-common-architecture-allow');
    for (const node of nodes.filter((each) => selects(after.spec, each))) {
      assert.ok(selects(before.spec, node), `${node.name} was excluded`);
      if (isAllowed || chosenByPerson(before, node)) continue;
      const architecture = node.labels[arch] ?? '';
      for (const { image, architectures: has } of decision.images)
        assert.ok(has?.includes(architecture) ?? true, `${image} cannot run on ${node.name}`);
      if (decision.required === undefined || !Object.hasOwn(later.policy.architectures, architecture))
        continue;
      const labels = later.policy.architectures[architecture]?.requireNodeLabels ?? {};
      for (const [key, value] of Object.entries(labels)) assert.equal(node.labels[key], value, node.name);
    }
  });
  fc.assert(property, { numRuns: 1000 });
  t.ok(several > 0, `${several} decisions had labels of several architectures`);
});

test('the record stays correct: a third call finds the same own parts, makes the same decision and adds nothing', async () => {
  const property = fc.property(stories(fc.constant(undefined)), ({ input, later, decision, pod }) => {
    if (decision.outcome === 'skipped') return;
    const again = withGate(pod);
    const third = decide({ ...later, pod: again });
    assert.equal(third.outcome, decision.outcome);
    assert.deepEqual(third.required, decision.required);
    assert.deepEqual(third.preferred, decision.preferred);
    const patch = patchGatedPod(again, third);
    assert.deepEqual(
      patch.map(({ op, path }) => `${op} ${path}`),
      ['replace /metadata/resourceVersion', 'add /spec/schedulingGates'],
    );
    const recorded = recordedIn({ pod: again, waiting: true });
    if (recorded === undefined) return;
    const [now, first] = [ownFieldsOf(again.spec, recorded), ownFieldsOf(input.pod.spec, undefined)];
    assert.deepEqual(now.nodeSelector, first.nodeSelector);
    assert.deepEqual(now.terms, first.terms);
    assert.deepEqual(now.preferred.own, first.preferred.own);
    assert.deepEqual(now.tolerations.own, first.tolerations.own);
  });
  fc.assert(property, runs);
});
