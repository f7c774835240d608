/** What holds for every gated pod, judged by models of the API server and of the scheduler. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementDecision, PlacementInput } from '../../../src/placement/decision.ts';
import { ownFieldsOf } from '../../../src/placement/record/own-fields.ts';
import { patchGatedPod } from '../../../src/placement/patch/patch.ts';
import { recordedIn } from '../../../src/placement/record/read.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { hostileRecord, inputs, knownImages, nodes } from '../../support/arbitrary-pods.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import { applied, factsFrom, place, withLabels } from '../../support/placement-input.ts';
import { chosenByPerson, schedulingFaults, selects, tolerates } from '../../support/scheduler-model.ts';

const runs = { numRuns: 500 };
const anyRecord = fc.option(hostileRecord, { nil: undefined });
const gate = { name: 'arch.example/scheduling-gate' };
type Node = (typeof nodes)[number];

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
  /** As the webhook let it in. */
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

/** What the API server leaves out of what it keeps. */
function stored(pod: Pod): Pod {
  return JSON.parse(
    JSON.stringify(pod, (key, value: unknown) =>
      (key === 'matchExpressions' || key === 'matchFields') && Array.isArray(value) && value.length === 0
        ? undefined
        : value,
    ),
  ) as Pod;
}

/** A pod is admitted with what is known then, waits, and is decided with what is known later. */
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

function architectureOf(node: Node): string {
  return node.labels['kubernetes.io/arch'] ?? '';
}

test('every patch is accepted, our gate goes, and the gates of others stay', async () => {
  const property = fc.property(stories(anyRecord), ({ gated, pod }) => {
    assert.deepEqual(gatedUpdateFaults(gated, pod), []);
    assert.deepEqual(schedulingFaults(pod.spec), schedulingFaults(gated.spec));
    assert.deepEqual(
      pod.spec.schedulingGates ?? [],
      gated.spec.schedulingGates?.filter(({ name }) => name !== gate.name),
    );
    assert.equal(pod.metadata?.resourceVersion, '7');
  });
  fc.assert(property, runs);
});

test('a gated pod never gets onto a node that it excluded, or that a known image cannot run on', async (t) => {
  let several = 0;
  const property = fc.property(stories(anyRecord), ({ input, gated, later, decision, pod }) => {
    if (decision.outcome === 'skipped') return;
    if (Object.keys(decision.nodeLabelsByArchitecture).length > 1) several += 1;
    const isAllowed = decision.reasons.some(({ rule }) => rule === 'no-common-architecture-allow');
    for (const node of nodes.filter((each) => selects(pod.spec, each))) {
      assert.ok(selects(input.pod.spec, node) && selects(gated.spec, node), `${node.name} was excluded`);
      if (isAllowed || chosenByPerson(input.pod, node)) continue;
      const architecture = architectureOf(node);
      for (const { image, architectures: has } of decision.images)
        assert.ok(has?.includes(architecture) ?? true, `${image} cannot run on ${node.name}`);
      if (decision.required === undefined) continue;
      const labels = later.policy.architectures[architecture]?.requireNodeLabels ?? {};
      if (Object.hasOwn(later.policy.architectures, architecture))
        for (const [key, value] of Object.entries(labels)) assert.equal(node.labels[key], value, node.name);
    }
  });
  fc.assert(property, { numRuns: 1000 });
  t.ok(several > 5, `${several} decisions had labels of several architectures`);
});

test('a gated pod may run on the same nodes as at admission, or fewer', async (t) => {
  let compared = 0;
  const property = fc.property(stories(fc.constant(undefined)), ({ input, later, decision, pod }) => {
    if (decision.outcome === 'skipped') return;
    const direct = place({ ...later, pod: input.pod, waiting: false });
    const groups = new Set(
      (decision.required ?? []).map((name) => JSON.stringify(decision.nodeLabelsByArchitecture[name] ?? {})),
    );
    const hadTerms = input.pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    const isExact = groups.size < 2 || !hadTerms;
    // What an earlier call added stays: labels that a policy asked for then, and a bound that nothing would be left of.
    fc.pre(decision.reasons.every(({ rule }) => rule !== 'no-common-architecture-allow'));
    fc.pre(JSON.stringify(later.policy.architectures) === JSON.stringify(input.policy.architectures));
    compared += 1;
    const found = nodes.filter((node) => selects(pod.spec, node)).map(({ name }) => name);
    const wanted = nodes.filter((node) => selects(direct.pod.spec, node)).map(({ name }) => name);
    if (isExact) assert.deepEqual(found, wanted);
    else
      assert.deepEqual(
        found,
        wanted.filter((name) => found.includes(name)),
      );
    for (const node of nodes.filter((each) => found.includes(each.name)))
      assert.ok(!tolerates(direct.pod.spec.tolerations, node) || tolerates(pod.spec.tolerations, node));
    assert.equal(decision.outcome, direct.decision.outcome);
  });
  fc.assert(property, runs);
  t.ok(compared > 100, `${compared} were compared`);
});

test('the record stays true: a third look finds the same own parts, decides the same and adds nothing', async () => {
  const property = fc.property(stories(fc.constant(undefined)), ({ input, later, decision, pod }) => {
    if (decision.outcome === 'skipped') return;
    const again = withGate(pod);
    const third = decide({ ...later, pod: again });
    assert.equal(third.outcome, decision.outcome);
    assert.deepEqual(third.required, decision.required);
    assert.deepEqual(third.preferred, decision.preferred);
    const patch = patchGatedPod(again, third);
    assert.deepEqual(
      patch.map(({ op, path }) => [op, path.replace(/\d+$/u, 'N')]),
      [
        ['replace', '/metadata/resourceVersion'],
        ['remove', '/spec/schedulingGates/N'],
      ],
    );
    const recorded = recordedIn({ pod: again, policy: later.policy, waiting: true });
    if (recorded === undefined) return;
    const [now, first] = [ownFieldsOf(again.spec, recorded), ownFieldsOf(input.pod.spec, undefined)];
    assert.deepEqual(now.nodeSelector, first.nodeSelector);
    assert.deepEqual(now.terms, first.terms);
    assert.deepEqual(now.preferred.own, first.preferred.own);
    assert.deepEqual(now.tolerations.own, first.tolerations.own);
  });
  fc.assert(property, runs);
});
