import { test } from 'tap';
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { constrainsItself, permits } from '../../../src/placement/pod/terms.ts';
import { inputOf, isIn, place, podOf, termOf, termsOf, withLabels } from '../../support/placement-input.ts';
import { like } from '../../support/like.ts';

const arch = 'kubernetes.io/arch';
const pinned: NodeSelectorTerm = { matchFields: [isIn('metadata.name', 'n1')] };
const notPinned: NodeSelectorTerm = {
  matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['n1'] }],
};

function e(key: string, operator: string, ...values: string[]): NodeSelectorRequirement {
  return values.length === 0 ? { key, operator } : { key, operator, values };
}

/** `zone In a; arch NotIn arm64` */
function parsed(term: NodeSelectorTerm | string): NodeSelectorTerm {
  if (typeof term !== 'string') return term;
  const expressions = term.split('; ').map((text) => text.replace(/^arch /, `${arch} `).split(' '));
  return termOf(
    ...expressions.map(([key = '', operator = '', values]) =>
      e(key, operator, ...(values?.split(',') ?? [])),
    ),
  );
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
  /** Terms, or their expressions as text. */
  readonly terms?: readonly (NodeSelectorTerm | string)[] | null;
  readonly after: readonly (NodeSelectorTerm | string)[] | null;
  readonly policy?: Partial<Policy>;
}

const differing: Partial<Policy> = { architectures: { arm64: withLabels({ pool: 'arm', disk: 'ssd' }) } };
const same: Partial<Policy> = {
  architectures: { amd64: withLabels({ pool: 'mixed' }), arm64: withLabels({ pool: 'mixed' }) },
};

const cases: Readonly<Record<string, Case>> = {
  'ANDed into a term': { terms: ['zone In a'], after: ['zone In a; arch In amd64,arm64'] },
  'ANDed into each term, never added as a further term': {
    terms: ['zone In a', 'disk Exists'],
    after: ['zone In a; arch In amd64,arm64', 'disk Exists; arch In amd64,arm64'],
  },
  'an empty one stays empty': { terms: [{}, 'zone In a'], after: [{}, 'zone In a; arch In amd64,arm64'] },
  'a term of empty lists stays empty': {
    terms: [{ matchExpressions: [], matchFields: [] }, 'zone In a'],
    after: [{ matchExpressions: [], matchFields: [] }, 'zone In a; arch In amd64,arm64'],
  },
  'only empty terms: the pod still matches no node': { terms: [{}], after: [{}] },
  'an empty list matches nothing and stays': { terms: [], after: [] },
  'a null list too': { terms: null, after: null },
  'a term with an architecture stays unchanged beside one that gets ours': {
    terms: ['arch In s390x', 'zone In a'],
    after: ['arch In s390x', 'zone In a; arch In amd64,arm64'],
  },
  'the beta label is a constraint too': {
    terms: ['beta.kubernetes.io/arch In amd64', 'zone In a'],
    after: ['beta.kubernetes.io/arch In amd64', 'zone In a; arch In amd64,arm64'],
  },
  'NotIn is no constraint': {
    terms: ['arch NotIn arm64'],
    after: ['arch NotIn arm64; arch In amd64,arm64'],
  },
  'Exists is no constraint': { terms: ['arch Exists'], after: ['arch Exists; arch In amd64,arm64'] },
  'DoesNotExist is a constraint': { terms: ['arch DoesNotExist'], after: ['arch DoesNotExist'] },
  'Gt is no constraint': { terms: ['arch Gt 5'], after: ['arch Gt 5; arch In amd64,arm64'] },
  'Lt is no constraint': { terms: ['arch Lt 5'], after: ['arch Lt 5; arch In amd64,arm64'] },
  'a pinned node stays unchanged': { terms: [pinned], after: [pinned] },
  'an excluded node gets expressions': {
    terms: [notPinned],
    after: [{ ...notPinned, matchExpressions: [ours] }],
  },
  'fields and null expressions': {
    terms: [{ ...notPinned, matchExpressions: null } as unknown as NodeSelectorTerm],
    after: [{ ...notPinned, matchExpressions: [ours] }],
  },
  'multiplied if node labels differ by architecture': {
    terms: ['zone In a', {}, pinned],
    policy: differing,
    after: ['zone In a; arch In amd64', 'zone In a; arch In arm64; disk In ssd; pool In arm', {}, pinned],
  },
  'created and multiplied if there is none': {
    policy: differing,
    after: ['arch In amd64', 'arch In arm64; disk In ssd; pool In arm'],
  },
  'not multiplied if the labels are equal': {
    terms: ['zone In a'],
    policy: same,
    after: ['zone In a; arch In amd64,arm64; pool In mixed'],
  },
};

for (const [name, { terms, policy, after }] of Object.entries(cases)) {
  test(`terms: ${name}`, async (t) => {
    const pod = terms === undefined ? podOf(['a']) : withTerms(terms === null ? null : terms.map(parsed));
    const input = inputOf(pod, { a: 'amd64 arm64' }, policy);
    const placed = place(input);
    t.strictSame(termsOf(placed.pod), after === null ? null : after.map(parsed));
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

test('which expressions constrain the architecture', async (t) => {
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

test('a pod whose NotIn excludes all architectures of its images gets a warning', async (t) => {
  const { decision, pod } = place(inputOf(withTerms([termOf(e(arch, 'NotIn', 'arm64'))]), { a: 'arm64' }));
  t.strictSame(termsOf(pod), [termOf(e(arch, 'NotIn', 'arm64'), e(arch, 'In', 'arm64'))]);
  like(t, decision.warnings, [/own node affinity excludes all that its images can run on: arm64/u]);
  t.strictSame(
    place(inputOf(withTerms([termOf(e(arch, 'NotIn', 'arm64'))]), { a: 'arm64 amd64' })).decision.warnings,
    [],
  );
});
