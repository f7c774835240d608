import { test } from 'tap';
import type { ObjectMeta, PodSpec } from '../../../src/kube/api/objects.ts';
import type { Policy, Preference } from '../../../src/policy/effective/policy.ts';
import { parseWeights } from '../../../src/placement/rules/preferred.ts';
import {
  type Known,
  archIn,
  inputOf,
  isIn,
  place,
  podOf,
  requiring,
  termOf,
  termsOf,
  withLabels,
} from '../../support/placement-input.ts';

const arch = 'kubernetes.io/arch';
const soft: Preference = { weights: { arm64: 70, amd64: 30 }, origin: 'configuration' };
const hard = { preference: soft, preferenceMode: 'hard' as const };
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
const bySoft: Given = { policy: { preference: soft } };
const byHard: Given = { policy: hard };
const honoring = (...preferredLabels: string[]): Given => ({ policy: { preferredLabels } });
const other = 'other.example/preferred';
const onAmdOrArm = { schedulableArchitectures: ['amd64', 'arm64'] };
const unknown: Given = { known: {} };
const anything: Given = { known: { a: '' } };

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

/** The rules of the decision, then its weights; and its warnings. */
type Case = readonly [given: Given, decided?: string, ...warnings: RegExp[]];
const leftOut = 'preference-left-out';

const cases: Readonly<Record<string, Case>> = {
  none: [{}],
  'the label': [asks('arm64'), 'preferred-label arm64=100'],
  'the label of another program, where it is honored': [
    { ...labeled({ [other]: 'arm64' }), ...honoring('none.example/preferred', other) },
    'preferred-label arm64=100',
  ],
  'and not where it is not': [labeled({ [other]: 'arm64' })],
  'ours before it': [
    { ...labeled({ 'arch.example/preferred': 'amd64', [other]: 'arm64' }), ...honoring(other) },
    'preferred-label amd64=100',
  ],
  'a label of another program that the images cannot meet is named in the warning': [
    { ...labeled({ [other]: 's390x' }), ...honoring(other) },
    leftOut,
    /label other\.example\/preferred/,
  ],
  'the annotation, heaviest first': [weighs('arm64=20, amd64 = 80'), 'preferred-weights amd64=80 arm64=20'],
  'equal weights by name': [weighs('arm64=5,amd64=5'), 'preferred-weights amd64=5 arm64=5'],
  'the policy': [bySoft, 'preferred-policy arm64=70 amd64=30'],
  'the label before the annotation before the policy': [
    { ...bySoft, metadata: { ...asks('amd64').metadata, ...weighs('arm64=1').metadata } },
    'preferred-label amd64=100',
  ],
  'the annotation before the policy': [{ ...weighs('arm64=1'), ...bySoft }, 'preferred-weights arm64=1'],
  'a label that the images cannot meet, with a warning': [
    asks('s390x'),
    leftOut,
    /label arch.example\/preferred: s390x is ignored, the pod can only run on amd64, arm64/u,
  ],
  'then the next that applies': [
    { ...asks('s390x'), ...bySoft },
    'preference-left-out preferred-policy arm64=70 amd64=30',
    /s390x/u,
  ],
  'a part that cannot be met': [
    weighs('s390x=50,arm64=10'),
    'preference-left-out preferred-weights arm64=10',
    /preferred-weights: s390x is ignored/u,
  ],
  'a policy that cannot be met is ignored silently': [
    { known: { a: 'amd64' }, policy: { preference: { ...soft, weights: { arm64: 1 } } } },
    leftOut,
  ],
  'a label that is not an architecture': [asks('not an arch'), leftOut, /is invalid and ignored/u],
  'an annotation that is invalid': [weighs('arm64=101'), leftOut, /preferred-weights is invalid/u],
  'an empty label': [asks('')],
  "the pod's own wins": [{ ...asks('arm64'), ...bySoft, spec: ownPreference(arch) }, 'preference-own'],
  "the pod's own by the beta label wins, hard mode too": [
    { ...byHard, spec: ownPreference('beta.kubernetes.io/arch') },
    'preference-own',
  ],
  'its own for something else does not': [
    { ...bySoft, spec: ownPreference('zone') },
    'preferred-policy arm64=70 amd64=30',
  ],
  'hard: the heaviest alone': [byHard, 'preferred-policy preference-hard arm64=70'],
  'hard: the next where the heaviest cannot be met': [
    { ...byHard, known: { a: 'amd64 s390x' } },
    'preference-left-out preferred-policy preference-hard amd64=30',
  ],
  'one that the pod itself excludes': [
    { ...asks('arm64'), ...notArm },
    leftOut,
    /arm64 is ignored, the pod can only run on amd64/u,
  ],
  'a weight of a policy out of range': [
    { policy: { preference: { ...soft, weights: { arm64: 0, amd64: 100.5, 'a,b': 5 } } } },
  ],
  'while an image is unknown, a preference waits; without a warning behind a gate': [
    { ...asks('arm64'), ...unknown },
    leftOut,
  ],
  'while an image is unknown and let through, it is': [
    { ...asks('arm64'), ...unknown, policy: { onUnknownImage: 'allow' } },
    leftOut,
    /arm64 waits until every image is known/u,
  ],
  'images that constrain nothing can meet any': [
    { ...asks('arm64'), ...anything },
    'preferred-label arm64=100',
  ],
  'the policy too, in mode hard': [{ ...byHard, ...anything }, 'preferred-policy preference-hard arm64=70'],
  'except a name that is probably a mistake': [
    { ...asks('aarch64'), ...anything },
    leftOut,
    /unknown architecture aarch64; did you mean arm64\?/u,
  ],
  'and one that the cluster does not have': [
    { ...asks('s390x'), ...anything, policy: onAmdOrArm },
    leftOut,
    /s390x is ignored, the pod can only run on amd64, arm64/u,
  ],
  'and one that the pod excludes': [
    { ...asks('arm64'), ...anything, ...notArm },
    leftOut,
    /arm64 is ignored, the pod's own node affinity excludes it/u,
  ],
  'images that share nothing can meet none': [
    { ...asks('arm64'), known: { a: 's390x' }, policy: { ...onAmdOrArm, onNoCommonArchitecture: 'allow' } },
    leftOut,
    /no architecture/u,
    /arm64 is ignored, the pod can only run on none/u,
  ],
  'names of things that every object has': [
    asks('constructor'),
    leftOut,
    /unknown architecture constructor/u,
  ],
  'a mistake, with the name that was meant': [
    asks('amd46'),
    leftOut,
    /label arch.example\/preferred: unknown architecture amd46; did you mean amd64\?$/u,
  ],
  "a kernel's name, at once, behind a gate too": [
    { ...asks('aarch64'), ...unknown },
    leftOut,
    /unknown architecture aarch64; did you mean arm64\?$/u,
  ],
  'a mistake among weights': [
    weighs('x86_64=50,arm64=10'),
    'preference-left-out preferred-weights arm64=10',
    /preferred-weights: unknown architecture x86_64; did you mean amd64\?$/u,
  ],
  'an architecture that nodes have is none': [
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
    t.match(decision.warnings, warnings);
    t.strictSame(place({ ...input, pod }).patch, []);
  });
}

test('soft preferences are weighted terms after the own ones', async (t) => {
  const { pod } = placed({ ...bySoft, spec: ownPreference('zone') });
  const term = (weight: number, key: string, value: string): unknown => ({
    weight,
    preference: termOf(isIn(key, value)),
  });
  t.strictSame(pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution, [
    term(1, 'zone', 'amd64'),
    term(70, arch, 'arm64'),
    term(30, arch, 'amd64'),
  ]);
  t.equal(pod.spec.nodeSelector, undefined);
});

test('a hard preference pins by nodeSelector', async (t) => {
  const policy: Partial<Policy> = { ...hard, tolerations: [{ key: 'arch', operator: 'Equal' }] };
  const { pod, decision } = placed({ spec: { nodeSelector: { zone: 'a' } }, policy });
  t.strictSame(pod.spec.nodeSelector, { zone: 'a', [arch]: 'arm64' });
  t.strictSame(decision.required, ['arm64']);
  t.equal(pod.spec.affinity, undefined, 'nothing is said twice');
  t.strictSame(pod.spec.tolerations, [{ key: 'arch', operator: 'Equal', value: 'arm64' }]);
});

test('the mode of the configuration applies to the preference of a pod too', async (t) => {
  for (const given of [asks('arm64'), weighs('arm64=80,amd64=20')]) {
    const { input, pod, decision } = placed({ ...given, policy: { preferenceMode: 'hard' } });
    t.equal(decision.preferenceMode, 'hard');
    t.strictSame(pod.spec.nodeSelector, { [arch]: 'arm64' });
    t.strictSame(place({ ...input, pod }).patch, [], 'called again');
    const injected = { ...pod, spec: { ...pod.spec, containers: podOf(['a', 'b']).spec.containers } };
    const again = place(inputOf(injected, { ...both, b: 's390x amd64' }, { preferenceMode: 'hard' }));
    t.equal(again.decision.outcome, 'placed', 'a sidecar that cannot run there is no contradiction');
    t.equal(again.pod.spec.nodeSelector?.[arch] ?? 'amd64', 'amd64');
  }
  t.equal(placed(asks('arm64')).pod.spec.nodeSelector, undefined, 'in soft mode it is a weight');
});

test('a hard preference keeps what nodes of its architecture must carry', async (t) => {
  const architectures = { arm64: withLabels({ pool: 'arm' }) };
  const { pod } = placed({ policy: { ...hard, architectures } });
  t.strictSame(pod.spec.nodeSelector, { [arch]: 'arm64' });
  t.strictSame(termsOf(pod), [termOf(isIn('pool', 'arm'))]);
});

test('if a term chose another architecture, a hard preference narrows the other terms', async (t) => {
  const chosen = termOf(archIn('amd64'));
  const zone = isIn('zone', 'a');
  const { pod } = placed({ ...byHard, spec: requiring(chosen, termOf(zone)) });
  t.equal(pod.spec.nodeSelector, undefined);
  t.strictSame(pod.spec.affinity, requiring(chosen, termOf(zone, archIn('arm64'))).affinity);
});

test('the annotation of weights', async (t) => {
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
