/** Images narrow required terms that name several architectures. */
import { test } from 'tap';
import type { NodeSelectorTerm } from '../../../../src/kube/api/objects.ts';
import { decide } from '../../../../src/placement/decide.ts';
import { patchGatedPod } from '../../../../src/placement/patch/patch.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import {
  applied,
  archIn,
  inputOf,
  isIn,
  type Known,
  outcomeOf,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
  archLabel,
  notIn,
} from '../../../support/placement-input.ts';
import { withUserMs } from '../../../support/cpu-time.ts';
import { like } from '../../../support/like.ts';

const both = archIn('amd64', 'arm64');
const beta = isIn('beta.kubernetes.io/arch', 'amd64', 'arm64');
const not = (...values: string[]) => notIn(archLabel, ...values);
const pinned: NodeSelectorTerm = { matchFields: [isIn('metadata.name', 'n1')] };

interface More {
  readonly images?: string;
  readonly policy?: Partial<Policy>;
  readonly warning?: RegExp;
}
type Case = readonly [
  terms: readonly NodeSelectorTerm[],
  decided: string,
  /** For each term: `+` gets the list of required architectures, `=` nothing. */
  added: string,
  more?: More,
];

const unknown = { images: 'unknown' };
const falling = (fallbackArchitecture: string): More => ({
  ...unknown,
  policy: { onUnknownImage: 'fallback', fallbackArchitecture },
});

const cases: Readonly<Record<string, Case>> = {
  'images with one of them': [[termOf(both)], 'placed arm64', '+'],
  'by the beta label': [[termOf(beta)], 'placed arm64', '+'],
  'beside a term that names one': [[termOf(both), termOf(archIn('s390x'))], 'placed arm64', '+ ='],
  'beside a pinned node': [[termOf(both), pinned], 'placed arm64', '+ ='],
  'with an exclusion that leaves one': [[termOf(both, not('amd64'))], 'own-constraint', '='],
  'by both labels, with one in common': [[termOf(beta, archIn('arm64', 's390x'))], 'own-constraint', '='],
  'twice the same one': [[termOf(archIn('arm64', 'arm64'))], 'own-constraint', '='],
  'images with none of them': [
    [termOf(archIn('amd64', 's390x'))],
    'placed arm64',
    '+',
    { warning: /excludes all that its images can run on: arm64/u },
  ],
  'an unknown image': [[termOf(both)], 'gated', '=', unknown],
  'an unknown image and a fallback that is not named': [
    [termOf(both)],
    'allowed-unknown',
    '=',
    falling('s390x'),
  ],
  'an unknown image and a fallback that is named': [[termOf(both)], 'fallback arm64', '+', falling('arm64')],
  'a fallback that the pod excludes': [[termOf(not('arm64'))], 'allowed-unknown', '=', falling('arm64')],
};

const known: Known = { arm: 'arm64', all: 'amd64 arm64 s390x' };

for (const [name, [terms, decided, added, more = {}]] of Object.entries(cases)) {
  test(`several architectures: ${name}`, async (t) => {
    const { images = 'arm', policy, warning } = more;
    const input = inputOf(podOf([images], requiring(...terms)), known, policy);
    const { decision, pod } = place(input);
    t.equal(outcomeOf(decision), decided);
    const marks = added.split(' ');
    const wanted = terms.map((term, index) =>
      marks[index] === '=' ? term : termOf(...(term.matchExpressions ?? []), archIn('arm64')),
    );
    t.strictSame(termsOf(pod), wanted);
    t.strictSame(place({ ...input, pod }).patch, [], 'a second call changes nothing');
    if (warning) like(t, decision.warnings, [warning]);
  });
}

test('a gated pod is narrowed when its images are known', async (t) => {
  const gated = place(inputOf(podOf(['arm'], requiring(termOf(both)), { resourceVersion: '1' }), {})).pod;
  t.strictSame(gated.spec.schedulingGates, [{ name: 'arch.example/scheduling-gate' }]);
  const decision = decide(inputOf(gated, known, { onUnknownImage: 'fallback' }, { waiting: true }));
  t.strictSame(termsOf(applied(gated, patchGatedPod(gated, decision))), [termOf(both, archIn('arm64'))]);
});

test('a term is copied only for architectures that it names', async (t) => {
  const architectures = { arm64: withLabels({ pool: 'p' }), s390x: withLabels({ pool: 'q' }) };
  const input = inputOf(podOf(['all'], requiring(termOf(both), termOf(archIn('s390x', 'ppc64le')))), known, {
    architectures,
  });
  const { pod } = place(input);
  t.strictSame(termsOf(pod), [
    termOf(both, archIn('amd64')),
    termOf(both, archIn('arm64'), isIn('pool', 'p')),
    termOf(archIn('s390x', 'ppc64le'), archIn('s390x'), isIn('pool', 'q')),
  ]);
  t.strictSame(place({ ...input, pod }).patch, []);
});

test('long lists of architectures are read in linear time', async (t) => {
  const values = (start: number): string[] =>
    Array.from({ length: 40_000 }, (_, index) => `a${start + index}`);
  const hostile = termOf(
    archIn(...values(0)),
    isIn('beta.kubernetes.io/arch', ...values(39_998)),
    not(...values(0)),
  );
  const [, ms] = await withUserMs(() => place(inputOf(podOf(['arm'], requiring(hostile)), known)));
  t.ok(ms < 2000, `${ms} ms`);
});
