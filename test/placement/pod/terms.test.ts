import { test } from 'tap';
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
} from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { decide } from '../../../src/placement/decide.ts';
import { operatingSystemOf } from '../../../src/placement/pod/terms.ts';
import {
  facts,
  inputOf,
  isIn,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
} from '../../support/placement-input.ts';
import { withUserMs } from '../../support/cpu-time.ts';
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

const ours = e(arch, 'In', 'amd64', 'arm64');

interface Case {
  /** Terms, or their expressions as text. */
  readonly terms?: readonly (NodeSelectorTerm | string)[] | null;
  readonly after: readonly (NodeSelectorTerm | string)[] | null;
  readonly policy?: Partial<Policy>;
}

const differing: Partial<Policy> = { architectures: { arm64: withLabels({ pool: 'arm', disk: 'ssd' }) } };

const cases: Readonly<Record<string, Case>> = {
  'a term of empty lists stays empty': {
    terms: [{ matchExpressions: [], matchFields: [] }, 'zone In a'],
    after: [{ matchExpressions: [], matchFields: [] }, 'zone In a; arch In amd64,arm64'],
  },
  'an empty list matches nothing and stays': { terms: [], after: [] },
  'a null list too': { terms: null, after: null },
  'Gt is no constraint': { terms: ['arch Gt 5'], after: ['arch Gt 5; arch In amd64,arm64'] },
  'Lt is no constraint': { terms: ['arch Lt 5'], after: ['arch Lt 5; arch In amd64,arm64'] },
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

test('a part that matches no node has a reason', async (t) => {
  for (const [terms, count] of [
    [[], 1],
    [['zone In a', {}], 1],
    [['zone In a'], 0],
  ] as const) {
    const { reasons } = place(inputOf(withTerms(terms.map(parsed)), { a: 'arm64' })).decision;
    t.equal(reasons.filter(({ rule }) => rule === 'empty-term').length, count);
  }
});

test('a pod whose terms exclude all architectures of its images gets a warning', async (t) => {
  for (const [expression, known, isWarned] of [
    [e(arch, 'NotIn', 'arm64'), 'arm64', true],
    [e(arch, 'NotIn', 'arm64'), 'arm64 amd64', false],
    [e(arch, 'In', 'amd64', 's390x'), 'arm64', true],
  ] as const) {
    const { decision, pod } = place(inputOf(withTerms([termOf(expression)]), { a: known }));
    t.equal(termsOf(pod)?.[0]?.matchExpressions?.length, 2, 'the requirement is added');
    const warning = /own node affinity excludes all that its images can run on: arm64/u;
    like(t, decision.warnings, isWarned ? [warning] : []);
    t.equal(decision.warnings.length > 0, isWarned);
  }
});

test('long lists of architectures are read in linear time', async (t) => {
  const values = (start: number): string[] =>
    Array.from({ length: 40_000 }, (_, index) => `a${start + index}`);
  const hostile = termOf(
    e(arch, 'In', ...values(0)),
    e('beta.kubernetes.io/arch', 'In', ...values(39_998)),
    e(arch, 'NotIn', ...values(0)),
  );
  const [, ms] = await withUserMs(() => place(inputOf(withTerms([hostile]), { a: 'arm64' })));
  t.ok(ms < 2000, `${ms} ms`);
});

const label = 'kubernetes.io/os';
const beta = 'beta.kubernetes.io/os';

function term(operator: string, ...values: readonly string[]): NodeSelectorTerm {
  return termOf({ key: label, operator, values });
}

const windows = { nodeSelector: { [label]: 'windows' } };

const systems: readonly (readonly [name: string, spec: Partial<PodSpec>, os: string])[] = [
  ['not set', {}, 'linux'],
  ['spec.os', { os: { name: 'windows' } }, 'windows'],
  ['spec.os without a name', { os: { name: '' } }, 'linux'],
  ['the nodeSelector', windows, 'windows'],
  ['the nodeSelector by the old label', { nodeSelector: { [beta]: 'windows' } }, 'windows'],
  ['both labels', { nodeSelector: { [beta]: 'linux', [label]: 'windows' } }, 'windows'],
  ['an empty value in the nodeSelector', { nodeSelector: { [label]: '' } }, 'linux'],
  ['other labels in the nodeSelector', { nodeSelector: { pool: 'windows' } }, 'linux'],
  ['spec.os beside a nodeSelector', { os: { name: 'linux' }, ...windows }, 'linux'],
  ['the only required term', requiring(term('In', 'windows')), 'windows'],
  ['the old label in a required term', requiring(termOf(isIn(beta, 'windows'))), 'windows'],
  ['every required term', requiring(term('In', 'windows'), term('In', 'windows')), 'windows'],
  ['every term that can match', requiring({}, term('In', 'windows')), 'windows'],
  ['one of two required terms', requiring(term('In', 'windows'), { matchExpressions: [] }), 'windows'],
  [
    'one of two terms that can match',
    requiring(term('In', 'windows'), termOf({ key: 'pool', operator: 'Exists' })),
    'linux',
  ],
  ['different terms', requiring(term('In', 'windows'), term('In', 'linux')), 'linux'],
  ['a term with two systems', requiring(term('In', 'windows', 'linux')), 'linux'],
  ['a term that excludes one', requiring(term('NotIn', 'linux')), 'linux'],
  ['no term at all', requiring(), 'linux'],
  ['the nodeSelector beside a term', { ...windows, ...requiring(term('In', 'linux')) }, 'windows'],
];

test('the operating system of a pod', async (t) => {
  for (const [name, spec, os] of systems) t.equal(operatingSystemOf(podOf(['a'], spec).spec), os, name);
});

test('an override applies to pods of every operating system', async (t) => {
  const override = facts('linux/arm64 windows/arm64', { source: 'override' });
  for (const os of ['linux', 'windows', 'freebsd', 'darwin']) {
    const decision = decide(inputOf(podOf(['a'], { nodeSelector: { [label]: os } }), { a: override }));
    t.strictSame(decision.required, ['arm64'], os);
  }
  const anything = facts('', { source: 'override' });
  t.equal(decide(inputOf(podOf(['a'], windows), { a: anything })).outcome, 'unconstrained');
});
