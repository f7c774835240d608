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
const asks = (value: string): ObjectMeta => ({ labels: { 'arch.example/preferred': value } });
const weighs = (value: string): ObjectMeta => ({ annotations: { 'arch.example/preferred-weights': value } });

interface Case {
  readonly metadata?: ObjectMeta;
  readonly spec?: Partial<PodSpec>;
  readonly known?: Known;
  readonly preference?: Preference;
  readonly policy?: Partial<Policy>;
  /** Rules, then weights. */
  readonly decided?: string;
  readonly warnings?: readonly RegExp[];
}

const ownPreference = (key: string): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, preference: termOf(isIn(key, 'amd64')) },
      ],
    },
  },
});
const notIn: Partial<PodSpec> = requiring([termOf({ key: arch, operator: 'NotIn', values: ['arm64'] })]);

const cases: Readonly<Record<string, Case>> = {
  none: {},
  'the label': { metadata: asks('arm64'), decided: 'preferred-label arm64=100' },
  'the label of another program, where it is honored': {
    metadata: { labels: { 'other.example/preferred': 'arm64' } },
    policy: { preferredLabels: ['none.example/preferred', 'other.example/preferred'] },
    decided: 'preferred-label arm64=100',
  },
  'and not where it is not': { metadata: { labels: { 'other.example/preferred': 'arm64' } } },
  'ours before it': {
    metadata: { labels: { 'arch.example/preferred': 'amd64', 'other.example/preferred': 'arm64' } },
    policy: { preferredLabels: ['other.example/preferred'] },
    decided: 'preferred-label amd64=100',
  },
  'a label of another program that the images cannot meet is named in the warning': {
    metadata: { labels: { 'other.example/preferred': 's390x' } },
    policy: { preferredLabels: ['other.example/preferred'] },
    decided: 'preference-left-out',
    warnings: [/label other\.example\/preferred/],
  },
  'the annotation, heaviest first': {
    metadata: weighs('arm64=20, amd64 = 80'),
    decided: 'preferred-weights amd64=80 arm64=20',
  },
  'equal weights by name': {
    metadata: weighs('arm64=5,amd64=5'),
    decided: 'preferred-weights amd64=5 arm64=5',
  },
  'the policy': { preference: soft, decided: 'preferred-policy arm64=70 amd64=30' },
  'the label before the annotation before the policy': {
    metadata: { ...asks('amd64'), ...weighs('arm64=1') },
    preference: soft,
    decided: 'preferred-label amd64=100',
  },
  'the annotation before the policy': {
    metadata: weighs('arm64=1'),
    preference: soft,
    decided: 'preferred-weights arm64=1',
  },
  'a label that the images cannot meet, with a warning': {
    metadata: asks('s390x'),
    decided: 'preference-left-out',
    warnings: [/label arch.example\/preferred: s390x is ignored, the pod can only run on amd64, arm64/u],
  },
  'then the next that applies': {
    metadata: asks('s390x'),
    preference: soft,
    decided: 'preference-left-out preferred-policy arm64=70 amd64=30',
    warnings: [/s390x/u],
  },
  'a part that cannot be met': {
    metadata: weighs('s390x=50,arm64=10'),
    decided: 'preference-left-out preferred-weights arm64=10',
    warnings: [/preferred-weights: s390x is ignored/u],
  },
  'a policy that cannot be met is ignored silently': {
    known: { a: 'amd64' },
    preference: { ...soft, weights: { arm64: 1 } },
    decided: 'preference-left-out',
  },
  'a label that is no architecture': {
    metadata: asks('not an arch'),
    decided: 'preference-left-out',
    warnings: [/is invalid and ignored/u],
  },
  'an annotation that is invalid': {
    metadata: weighs('arm64=101'),
    decided: 'preference-left-out',
    warnings: [/preferred-weights is invalid/u],
  },
  'an empty label': { metadata: asks('') },
  "the pod's own wins": {
    metadata: asks('arm64'),
    spec: ownPreference(arch),
    preference: soft,
    decided: 'preference-own',
  },
  "the pod's own by the beta label wins, hard mode too": {
    spec: ownPreference('beta.kubernetes.io/arch'),
    policy: hard,
    decided: 'preference-own',
  },
  'its own for something else does not': {
    spec: ownPreference('zone'),
    preference: soft,
    decided: 'preferred-policy arm64=70 amd64=30',
  },
  'hard: the heaviest alone': { policy: hard, decided: 'preferred-policy preference-hard arm64=70' },
  'hard: the next where the heaviest cannot be met': {
    known: { a: 'amd64 s390x' },
    policy: hard,
    decided: 'preference-left-out preferred-policy preference-hard amd64=30',
  },
  'one that the pod itself excludes': {
    metadata: asks('arm64'),
    spec: notIn,
    decided: 'preference-left-out',
    warnings: [/arm64 is ignored, the pod can only run on amd64/u],
  },
  'a weight of a policy out of range': {
    preference: { ...soft, weights: { arm64: 0, amd64: 100.5, 'a,b': 5 } },
  },
  'while an image is unknown, a preference waits; without a warning behind a gate': {
    metadata: asks('arm64'),
    known: {},
    decided: 'preference-left-out',
  },
  'while an image is unknown and let through, it is': {
    metadata: asks('arm64'),
    known: {},
    policy: { onUnknownImage: 'allow' },
    decided: 'preference-left-out',
    warnings: [/arm64 waits until every image is known/u],
  },
  'images that constrain nothing can meet any': {
    metadata: asks('arm64'),
    known: { a: '' },
    decided: 'preferred-label arm64=100',
  },
  'the policy too, in mode hard': {
    known: { a: '' },
    policy: hard,
    decided: 'preferred-policy preference-hard arm64=70',
  },
  'except a name that is probably a mistake': {
    metadata: asks('aarch64'),
    known: { a: '' },
    decided: 'preference-left-out',
    warnings: [/unknown architecture aarch64; did you mean arm64\?/u],
  },
  'and one that the cluster does not have': {
    metadata: asks('s390x'),
    known: { a: '' },
    policy: { schedulableArchitectures: ['amd64', 'arm64'] },
    decided: 'preference-left-out',
    warnings: [/s390x is ignored, the pod can only run on amd64, arm64/u],
  },
  'and one that the pod excludes': {
    metadata: asks('arm64'),
    spec: notIn,
    known: { a: '' },
    decided: 'preference-left-out',
    warnings: [/arm64 is ignored, the pod's own node affinity excludes it/u],
  },
  'images that share nothing can meet none': {
    metadata: asks('arm64'),
    known: { a: 's390x' },
    policy: { schedulableArchitectures: ['amd64', 'arm64'], onNoCommonArchitecture: 'allow' },
    decided: 'preference-left-out',
    warnings: [/no architecture/u, /arm64 is ignored, the pod can only run on none/u],
  },
  'names of things that every object has': {
    metadata: asks('constructor'),
    decided: 'preference-left-out',
    warnings: [/unknown architecture constructor/u],
  },
  'a mistake, with the name that was meant': {
    metadata: asks('amd46'),
    decided: 'preference-left-out',
    warnings: [/label arch.example\/preferred: unknown architecture amd46; did you mean amd64\?$/u],
  },
  "a kernel's name, at once, behind a gate too": {
    metadata: asks('aarch64'),
    known: {},
    decided: 'preference-left-out',
    warnings: [/unknown architecture aarch64; did you mean arm64\?$/u],
  },
  'a mistake among weights': {
    metadata: weighs('x86_64=50,arm64=10'),
    decided: 'preference-left-out preferred-weights arm64=10',
    warnings: [/preferred-weights: unknown architecture x86_64; did you mean amd64\?$/u],
  },
  'an architecture that nodes have is none': {
    metadata: asks('amd46'),
    policy: { schedulableArchitectures: ['amd46', 'amd64', 'arm64'] },
    decided: 'preference-left-out',
    warnings: [/amd46 is ignored, the pod can only run on amd64, arm64/u],
  },
};

for (const [
  name,
  { metadata, spec, known = { a: 'amd64 arm64' }, preference, policy, decided = '', warnings = [] },
] of Object.entries(cases)) {
  test(`preferred: ${name}`, async (t) => {
    const input = inputOf(podOf(['a'], spec, metadata), known, { preference, ...policy });
    const { decision, pod } = place(input);
    const weights = decision.preferred.map(({ architecture, weight }) => `${architecture}=${weight}`);
    const rules = decision.reasons.map(({ rule }) => rule).filter((rule) => rule.startsWith('prefer'));
    t.equal([...rules, ...weights].join(' '), decided);
    t.equal(decision.warnings.length, warnings.length);
    t.match(decision.warnings, warnings);
    t.strictSame(place({ ...input, pod }).patch, []);
  });
}

test('soft preferences are weighted terms after the own ones', async (t) => {
  const { pod } = place(
    inputOf(podOf(['a'], ownPreference('zone')), { a: 'amd64 arm64' }, { preference: soft }),
  );
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
  const { pod, decision } = place(
    inputOf(podOf(['a'], { nodeSelector: { zone: 'a' } }), { a: 'amd64 arm64' }, policy),
  );
  t.strictSame(pod.spec.nodeSelector, { zone: 'a', [arch]: 'arm64' });
  t.strictSame(decision.required, ['arm64']);
  t.equal(pod.spec.affinity, undefined, 'nothing is said twice');
  t.strictSame(pod.spec.tolerations, [{ key: 'arch', operator: 'Equal', value: 'arm64' }]);
});

test('the mode of the configuration applies to the preference of a pod too', async (t) => {
  const policy: Partial<Policy> = { preferenceMode: 'hard' };
  const preferences = [
    podOf(['a'], {}, { labels: { 'arch.example/preferred': 'arm64' } }),
    podOf(['a'], {}, { annotations: { 'arch.example/preferred-weights': 'arm64=80,amd64=20' } }),
  ];
  for (const preferring of preferences) {
    const { pod, decision } = place(inputOf(preferring, { a: 'amd64 arm64' }, policy));
    t.equal(decision.preferenceMode, 'hard');
    t.strictSame(pod.spec.nodeSelector, { [arch]: 'arm64' });
    t.strictSame(place(inputOf(pod, { a: 'amd64 arm64' }, policy)).patch, [], 'called again');
    const injected = { ...pod, spec: { ...pod.spec, containers: podOf(['a', 'b']).spec.containers } };
    const again = place(inputOf(injected, { a: 'amd64 arm64', b: 's390x amd64' }, policy));
    t.equal(again.decision.outcome, 'placed', 'a sidecar that cannot run there is no contradiction');
    t.equal(again.pod.spec.nodeSelector?.[arch] ?? 'amd64', 'amd64');
  }
  const soft = place(inputOf(preferences[0] ?? podOf([]), { a: 'amd64 arm64' }));
  t.equal(soft.pod.spec.nodeSelector, undefined);
});

test('a hard preference keeps what nodes of its architecture must carry', async (t) => {
  const architectures = { arm64: withLabels({ pool: 'arm' }) };
  const { pod } = place(inputOf(podOf(['a']), { a: 'amd64 arm64' }, { ...hard, architectures }));
  t.strictSame(pod.spec.nodeSelector, { [arch]: 'arm64' });
  t.strictSame(termsOf(pod), [termOf(isIn('pool', 'arm'))]);
});

test('if a term chose another architecture, a hard preference narrows the other terms', async (t) => {
  const chosen = termOf(archIn('amd64'));
  const zone = isIn('zone', 'a');
  const spec: Partial<PodSpec> = requiring([chosen, termOf(zone)]);
  const { pod } = place(inputOf(podOf(['a'], spec), { a: 'amd64 arm64' }, hard));
  t.equal(pod.spec.nodeSelector, undefined);
  t.strictSame(pod.spec.affinity, requiring([chosen, termOf(zone, archIn('arm64'))]).affinity);
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
