import { test } from 'tap';
import type { ObjectMeta, PodSpec } from '../../../../src/kube/api/objects.ts';
import type { Policy, Preference } from '../../../../src/policy/effective/policy.ts';
import { parseWeights } from '../../../../src/placement/rules/preference/read.ts';
import {
  type Known,
  inputOf,
  isIn,
  place,
  podOf,
  requiring,
  termOf,
} from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const arch = 'kubernetes.io/arch';
const soft: Preference = { weights: { arm64: 70, amd64: 30 }, origin: 'configuration' };
const hard = { preferences: [soft], preferenceMode: 'hard' as const };
const both: Known = { a: 'amd64 arm64' };

interface Given {
  readonly metadata?: ObjectMeta;
  readonly spec?: Partial<PodSpec>;
  /** Default: `both`. */
  readonly known?: Known;
  readonly policy?: Partial<Policy>;
}

const labeled = (labels: Record<string, string>): Given => ({ metadata: { labels } });
const asks = (value: string): Given => labeled({ 'arch.example/preferred': value });
const weighs = (value: string): Given => ({
  metadata: { annotations: { 'arch.example/preferred-weights': value } },
});
const bySoft: Given = { policy: { preferences: [soft] } };
const byHard: Given = { policy: hard };
const honoring = (...preferredLabels: string[]): Given => ({ policy: { preferredLabels } });
const other = 'other.example/preferred';
const onAmdOrArm = { schedulableArchitectures: ['amd64', 'arm64'] };
const unknown: Given = { known: {} };
/** Images that constrain nothing. */
const anything: Given = { known: { a: '' } };
const arm100 = 'preferred-label arm64=100';

const ownPreference = (key: string): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, preference: termOf(isIn(key, 'amd64')) },
      ],
    },
  },
});
const notArm: Given = { spec: requiring(termOf({ key: arch, operator: 'NotIn', values: ['arm64'] })) };

/** The rules and weights of the decision, and its warnings. */
type Case = readonly [given: Given, decided?: string, ...warnings: RegExp[]];
const leftOut = 'preference-left-out';

const cases: Readonly<Record<string, Case>> = {
  'the label': [asks('arm64'), arm100],
  'a label of another program': [
    { ...labeled({ [other]: 'arm64' }), ...honoring('none.example/preferred', other) },
    arm100,
  ],
  'a label of another program that is not honored': [labeled({ [other]: 'arm64' })],
  'our label before another': [
    { ...labeled({ 'arch.example/preferred': 'amd64', [other]: 'arm64' }), ...honoring(other) },
    'preferred-label amd64=100',
  ],
  'a label of another program that cannot be met': [
    { ...labeled({ [other]: 's390x' }), ...honoring(other) },
    leftOut,
    /label other\.example\/preferred/,
  ],
  'the annotation, heaviest first': [weighs('arm64=20, amd64 = 80'), 'preferred-weights amd64=80 arm64=20'],
  'equal weights, in order of name': [weighs('arm64=5,amd64=5'), 'preferred-weights amd64=5 arm64=5'],
  'a label that cannot be met': [
    asks('s390x'),
    leftOut,
    /label arch.example\/preferred: s390x is ignored, the pod can only run on amd64, arm64/u,
  ],
  'a part that cannot be met': [
    weighs('s390x=50,arm64=10'),
    'preference-left-out preferred-weights arm64=10',
    /preferred-weights: s390x is ignored/u,
  ],
  'a policy that cannot be met': [
    { known: { a: 'amd64' }, policy: { preferences: [{ ...soft, weights: { arm64: 1 } }] } },
    leftOut,
  ],
  'a label that is not an architecture': [
    asks('not an arch'),
    leftOut,
    /is invalid and ignored; write an architecture/u,
  ],
  'an annotation that is invalid': [
    weighs('arm64=101'),
    leftOut,
    /preferred-weights is invalid and ignored; write weights .* arm64=80,amd64=20/u,
  ],
  'an empty label': [asks('')],
  "the pod's own preference wins": [
    { ...asks('arm64'), ...bySoft, spec: ownPreference(arch) },
    'preference-own',
  ],
  "the pod's own preference, and no other": [{ spec: ownPreference(arch) }],
  'hard: only the heaviest': [byHard, 'preferred-policy preference-hard arm64=70'],
  'an unknown image, gated: no warning': [{ ...asks('arm64'), ...unknown }, leftOut],
  'an unknown image, admitted': [
    { ...asks('arm64'), ...unknown, policy: { onUnknownImage: 'allow' } },
    leftOut,
    /arm64 waits until every image is known/u,
  ],
  'free images meet any preference': [{ ...asks('arm64'), ...anything }, arm100],
  'free images, mode hard': [{ ...byHard, ...anything }, 'preferred-policy preference-hard arm64=70'],
  'free images, a typo': [
    { ...asks('aarch64'), ...anything },
    leftOut,
    /unknown architecture aarch64; did you mean arm64\?/u,
  ],
  'free images, an architecture that the cluster lacks': [
    { ...asks('s390x'), ...anything, policy: onAmdOrArm },
    leftOut,
    /s390x is ignored, the pod can only run on amd64, arm64/u,
  ],
  'free images, an architecture that the pod excludes': [
    { ...asks('arm64'), ...anything, ...notArm },
    leftOut,
    /arm64 is ignored, the pod's own node affinity excludes it/u,
  ],
  'images without a common architecture': [
    { ...asks('arm64'), known: { a: 's390x' }, policy: { ...onAmdOrArm, onNoCommonArchitecture: 'allow' } },
    leftOut,
    /no architecture/u,
    /arm64 is ignored, the pod can only run on none/u,
  ],
  'a name of every object': [asks('constructor'), leftOut, /unknown architecture constructor/u],
  'a typo, with a suggestion': [
    asks('amd46'),
    leftOut,
    /label arch.example\/preferred: unknown architecture amd46; did you mean amd64\?$/u,
  ],
  "a kernel's name, even behind a gate": [
    { ...asks('aarch64'), ...unknown },
    leftOut,
    /unknown architecture aarch64; did you mean arm64\?$/u,
  ],
  'a typo among weights': [
    weighs('x86_64=50,arm64=10'),
    'preference-left-out preferred-weights arm64=10',
    /preferred-weights: unknown architecture x86_64; did you mean amd64\?$/u,
  ],
  'an uncommon architecture of nodes is no typo': [
    { ...asks('amd46'), policy: { schedulableArchitectures: ['amd46', 'amd64', 'arm64'] } },
    leftOut,
    /amd46 is ignored, the pod can only run on amd64, arm64/u,
  ],
};

function placed({ metadata, spec, known = both, policy }: Given) {
  const input = inputOf(podOf(['a'], spec, metadata), known, policy);
  return { input, ...place(input) };
}

for (const [name, [given, decided = '', ...warnings]] of Object.entries(cases)) {
  test(`preferred: ${name}`, async (t) => {
    const { input, decision, pod } = placed(given);
    const weights = decision.preferred.map(({ architecture, weight }) => `${architecture}=${weight}`);
    const rules = decision.reasons.map(({ rule }) => rule).filter((rule) => rule.startsWith('prefer'));
    t.equal([...rules, ...weights].join(' '), decided);
    t.equal(decision.warnings.length, warnings.length);
    like(t, decision.warnings, warnings);
    t.strictSame(place({ ...input, pod }).patch, []);
  });
}

test('the annotation of weights is parsed strictly', async (t) => {
  const good = {
    'arm64=80': 'arm64=80',
    ' arm64 = 80 , amd64=1 ': 'arm64=80 amd64=1',
    'arm64=100': 'arm64=100',
    'arm64=007': 'arm64=7',
  };
  for (const [text, weights] of Object.entries(good)) {
    const found = parseWeights(text)?.map(({ architecture, weight }) => `${architecture}=${weight}`);
    t.equal(found?.join(' '), weights, text);
  }
  const many = (count: number): string =>
    Array.from({ length: count }, (_, index) => `a${index}=1`).join(',');
  t.equal(parseWeights(many(16))?.length, 16);
  const bad = [
    ...'arm64 arm64= =5 arm64=0 arm64=101 arm64=-1 arm64=1.5 arm64=1e1 arm64=1,'.split(' '),
    ...'arm64=1;amd64=2 arm64=1,arm64=2 x,=1 -a=1 unknown=1'.split(' '),
    '',
    'a b=1',
    many(17),
    `a=1${' '.repeat(1200)}`,
  ];
  for (const text of bad) t.equal(parseWeights(text), undefined, text.slice(0, 20));
});
