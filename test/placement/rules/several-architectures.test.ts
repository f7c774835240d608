/** Required terms that name several architectures leave a choice, which the images narrow. */
import { test } from 'tap';
import type { NodeSelectorTerm } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { patchGatedPod } from '../../../src/placement/patch/patch.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
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
} from '../../support/placement-input.ts';

const both = archIn('amd64', 'arm64');
const beta = isIn('beta.kubernetes.io/arch', 'amd64', 'arm64');
const not = (...values: string[]) => ({ key: 'kubernetes.io/arch', operator: 'NotIn', values });

interface Case {
  readonly terms: readonly NodeSelectorTerm[];
  readonly images?: string;
  readonly policy?: Partial<Policy>;
  readonly decided: string;
  /** Index of the list that a term got: `+` for the required architectures, `=` for nothing. */
  readonly added: string;
  readonly warning?: RegExp;
}

const cases: Readonly<Record<string, Case>> = {
  'one of them is left': { terms: [termOf(both)], decided: 'placed arm64', added: '+' },
  'by the beta label': { terms: [termOf(beta)], decided: 'placed arm64', added: '+' },
  'beside a term that names one': {
    terms: [termOf(both), termOf(archIn('s390x'))],
    decided: 'placed arm64',
    added: '+ =',
  },
  'beside a pinned node': {
    terms: [termOf(both), { matchFields: [isIn('metadata.name', 'n1')] }],
    decided: 'placed arm64',
    added: '+ =',
  },
  'with exclusions that leave one': {
    terms: [termOf(both, not('amd64'))],
    decided: 'own-constraint',
    added: '=',
  },
  'by both labels, with one in common': {
    terms: [termOf(beta, archIn('arm64', 's390x'))],
    decided: 'own-constraint',
    added: '=',
  },
  'twice the same one': { terms: [termOf(archIn('arm64', 'arm64'))], decided: 'own-constraint', added: '=' },
  'none that the images have': {
    terms: [termOf(archIn('amd64', 's390x'))],
    decided: 'placed arm64',
    added: '+',
    warning: /excludes all that its images can run on: arm64/u,
  },
  'an unknown image': { terms: [termOf(both)], images: 'unknown', decided: 'gated', added: '=' },
  'an unknown image and a fallback that they lack': {
    terms: [termOf(both)],
    images: 'unknown',
    policy: { onUnknownImage: 'fallback', fallbackArchitecture: 's390x' },
    decided: 'fallback',
    added: '=',
  },
  'an unknown image and a fallback that they have': {
    terms: [termOf(both)],
    images: 'unknown',
    policy: { onUnknownImage: 'fallback', fallbackArchitecture: 'arm64' },
    decided: 'fallback arm64',
    added: '+',
  },
  'a fallback that the pod excludes': {
    terms: [termOf(not('arm64'))],
    images: 'unknown',
    policy: { onUnknownImage: 'fallback', fallbackArchitecture: 'arm64' },
    decided: 'fallback',
    added: '=',
  },
};

const known: Known = { arm: 'arm64', all: 'amd64 arm64 s390x' };

for (const [name, { terms, images = 'arm', policy, decided, added, warning }] of Object.entries(cases)) {
  test(`several architectures: ${name}`, async (t) => {
    const input = inputOf(podOf([images], requiring(...terms)), known, policy);
    const { decision, pod } = place(input);
    t.equal(outcomeOf(decision), decided);
    t.strictSame(
      termsOf(pod),
      added.split(' ').map((mark, index) =>
        mark === '='
          ? terms[index]
          : {
              ...terms[index],
              matchExpressions: [...(terms[index]?.matchExpressions ?? []), archIn('arm64')],
            },
      ),
    );
    t.strictSame(place({ ...input, pod }).patch, [], 'a second call changes nothing');
    if (warning) t.match(decision.warnings, [warning]);
  });
}

test('a pod that was gated is narrowed when its images are known', async (t) => {
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
  const started = performance.now();
  place(inputOf(podOf(['arm'], requiring(hostile)), known));
  t.ok(performance.now() - started < 2000);
});
