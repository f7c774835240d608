import { test } from 'tap';
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { constrainsItself, permits } from '../../../src/placement/pod/terms.ts';
import { inputOf, isIn, place, podOf, termOf, termsOf, withLabels } from '../../support/placement-input.ts';

const arch = 'kubernetes.io/arch';
const pinned: NodeSelectorTerm = { matchFields: [isIn('metadata.name', 'n1')] };
const notPinned: NodeSelectorTerm = {
  matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n1'] }],
};

function e(key: string, operator: string, ...values: string[]): NodeSelectorRequirement {
  return values.length === 0 ? { key, operator } : { key, operator, values };
}

function withTerms(nodeSelectorTerms: readonly NodeSelectorTerm[] | null | undefined): Pod {
  const required = { nodeSelectorTerms } as { nodeSelectorTerms: readonly NodeSelectorTerm[] };
  return podOf(['a'], {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
  });
}

const zone = e('zone', 'In', 'a');
const ours = e(arch, 'In', 'amd64', 'arm64');

interface Case {
  readonly terms: readonly NodeSelectorTerm[] | null | undefined;
  readonly after: unknown;
  readonly policy?: Partial<Policy>;
}

const differing: Partial<Policy> = { architectures: { arm64: withLabels({ pool: 'arm', disk: 'ssd' }) } };
const same: Partial<Policy> = {
  architectures: { amd64: withLabels({ pool: 'mixed' }), arm64: withLabels({ pool: 'mixed' }) },
};
const disk = e('disk', 'In', 'ssd');
const pool = e('pool', 'In', 'arm');

const cases: Readonly<Record<string, Case>> = {
  'ANDed into one': { terms: [termOf(zone)], after: [termOf(zone, ours)] },
  'ANDed into each, never added as a further one': {
    terms: [termOf(zone), termOf(e('disk', 'Exists'))],
    after: [termOf(zone, ours), termOf(e('disk', 'Exists'), ours)],
  },
  'an empty one stays empty': { terms: [{}, termOf(zone)], after: [{}, termOf(zone, ours)] },
  'one of empty lists stays empty': {
    terms: [{ matchExpressions: [], matchFields: [] }, termOf(zone)],
    after: [{ matchExpressions: [], matchFields: [] }, termOf(zone, ours)],
  },
  'only empty ones: the pod matches nothing and keeps that': { terms: [{}], after: [{}] },
  'an empty list matches nothing and stays': { terms: [], after: [] },
  'a null list too': { terms: null, after: null },
  'one that chooses an architecture is kept beside one that gets ours': {
    terms: [termOf(e(arch, 'In', 's390x')), termOf(zone)],
    after: [termOf(e(arch, 'In', 's390x')), termOf(zone, ours)],
  },
  'the beta label chooses as well': {
    terms: [termOf(e('beta.kubernetes.io/arch', 'In', 'amd64')), termOf(zone)],
    after: [termOf(e('beta.kubernetes.io/arch', 'In', 'amd64')), termOf(zone, ours)],
  },
  'NotIn only leaves something out': {
    terms: [termOf(e(arch, 'NotIn', 'arm64'))],
    after: [termOf(e(arch, 'NotIn', 'arm64'), ours)],
  },
  'Exists constrains nothing': {
    terms: [termOf(e(arch, 'Exists'))],
    after: [termOf(e(arch, 'Exists'), ours)],
  },
  'DoesNotExist is a choice': {
    terms: [termOf(e(arch, 'DoesNotExist'))],
    after: [termOf(e(arch, 'DoesNotExist'))],
  },
  'Gt is none': { terms: [termOf(e(arch, 'Gt', '5'))], after: [termOf(e(arch, 'Gt', '5'), ours)] },
  'Lt is none': { terms: [termOf(e(arch, 'Lt', '5'))], after: [termOf(e(arch, 'Lt', '5'), ours)] },
  'a pinned node is kept': { terms: [pinned], after: [pinned] },
  'a node left out gets expressions': {
    terms: [notPinned],
    after: [{ ...notPinned, matchExpressions: [ours] }],
  },
  'fields and null expressions': {
    terms: [{ ...notPinned, matchExpressions: null } as unknown as NodeSelectorTerm],
    after: [{ ...notPinned, matchExpressions: [ours] }],
  },
  'multiplied where node labels differ by architecture': {
    terms: [termOf(zone), {}, pinned],
    policy: differing,
    after: [
      termOf(zone, e(arch, 'In', 'amd64')),
      termOf(zone, e(arch, 'In', 'arm64'), disk, pool),
      {},
      pinned,
    ],
  },
  'made and multiplied where there is none': {
    terms: undefined,
    policy: differing,
    after: [termOf(e(arch, 'In', 'amd64')), termOf(e(arch, 'In', 'arm64'), disk, pool)],
  },
  'not multiplied where the labels are the same': {
    terms: [termOf(zone)],
    policy: same,
    after: [termOf(zone, ours, e('pool', 'In', 'mixed'))],
  },
};

for (const [name, { terms, policy, after }] of Object.entries(cases)) {
  test(`terms: ${name}`, async (t) => {
    const pod = terms === undefined ? podOf(['a']) : withTerms(terms);
    const input = inputOf(pod, { a: 'amd64 arm64' }, policy);
    const placed = place(input);
    t.strictSame(termsOf(placed.pod), after);
    t.strictSame(place({ ...input, pod: placed.pod }).patch, [], 'a second call changes nothing');
  });
}

test('matchNodeLabels is ANDed into every term that can match', async (t) => {
  const pod: Pod = {
    ...withTerms([pinned, termOf(e(arch, 'In', 'amd64')), termOf(zone), {}]),
    metadata: { labels: { rack: 'r1' } },
  };
  const { pod: after } = place(inputOf(pod, { a: 'amd64 arm64' }, { matchNodeLabels: ['rack', 'row'] }));
  const rack = e('rack', 'In', 'r1');
  t.strictSame(termsOf(after), [
    { ...pinned, matchExpressions: [rack] },
    termOf(e(arch, 'In', 'amd64'), rack),
    termOf(zone, ours, rack),
    {},
  ]);
});

test('what constrains, and what is let through', async (t) => {
  t.equal(constrainsItself(termOf(e(arch, 'In', 'amd64'))), true);
  t.equal(constrainsItself(termOf(e('zone', 'In', 'amd64'))), false);
  t.equal(constrainsItself({}), false);
  t.equal(constrainsItself({ matchFields: [isIn('metadata.namespace', 'x')] }), false);
  t.equal(permits(termOf(e(arch, 'In', 'amd64')), 'amd64'), true);
  t.equal(permits(termOf(e(arch, 'In', 'amd64')), 'arm64'), false);
  t.equal(permits(termOf(e(arch, 'NotIn', 'amd64')), 'amd64'), false);
  t.equal(permits(termOf(e(arch, 'NotIn', 'amd64')), 'arm64'), true);
  t.equal(permits(termOf(e(arch, 'Exists')), 'arm64'), true);
  t.equal(permits(termOf(e(arch, 'DoesNotExist')), 'arm64'), false);
  t.equal(permits(termOf(e(arch, 'Gt', '1')), 'arm64'), false);
  t.equal(permits(termOf(e('zone', 'Gt', '1')), 'arm64'), true);
  t.equal(
    permits(termOf(e(arch, 'In', 'amd64', 'arm64'), e('beta.kubernetes.io/arch', 'In', 'amd64')), 'arm64'),
    false,
  );
  t.equal(permits({}, 'arm64'), false);
});

test('a pod whose NotIn leaves nothing of what its images have says so', async (t) => {
  const { decision, pod } = place(inputOf(withTerms([termOf(e(arch, 'NotIn', 'arm64'))]), { a: 'arm64' }));
  t.strictSame(termsOf(pod), [termOf(e(arch, 'NotIn', 'arm64'), e(arch, 'In', 'arm64'))]);
  t.match(decision.warnings, [/own node affinity excludes all that its images can run on: arm64/u]);
  t.strictSame(
    place(inputOf(withTerms([termOf(e(arch, 'NotIn', 'arm64'))]), { a: 'arm64 amd64' })).decision.warnings,
    [],
  );
});
