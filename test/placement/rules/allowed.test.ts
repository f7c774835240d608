/** What a custom resource leaves to the pod: a bound besides the images, never more than they have. */
import { test } from 'tap';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../src/placement/decision.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { failed, inputOf, outcomeOf, podOf, type Known, onArch } from '../../support/placement-input.ts';

const origin = 'PodPlacementConfig shop/db';
const allowed = (only: string): Partial<Policy> => ({ allowed: { architectures: only.split(' '), origin } });

interface More {
  readonly policy?: Partial<Policy>;
  readonly spec?: Partial<PodSpec>;
  readonly template?: PlacementInput['template'];
  /** Whether the rule takes part. */
  readonly told?: boolean;
  readonly says?: RegExp;
}
/** What the image has, or why it is not known; what the custom resource allows; the decision as `outcomeOf` writes it. */
type Case = readonly [image: Known[string] | undefined, only: string, decided: string, more?: More];

const unauthorized = failed('unauthorized');
const schedulable = (...schedulableArchitectures: string[]): More => ({
  policy: { schedulableArchitectures },
});
const fallback = (fallbackArchitecture: string): More => ({
  policy: { onUnknownImage: 'fallback', fallbackArchitecture },
});

const cases: Readonly<Record<string, Case>> = {
  'of what the images have': ['amd64 arm64 s390x', 'amd64 s390x', 'placed amd64 s390x'],
  'never what they lack': ['amd64', 'amd64 s390x', 'placed amd64'],
  'nothing of both': [
    'amd64',
    's390x',
    'denied none',
    {
      says: /^no architecture of those that PodPlacementConfig shop\/db allows \(s390x\) can run all images: a has amd64$/,
    },
  ],
  'nothing of both, which may be': [
    'amd64',
    's390x',
    'unconstrained',
    { policy: { onNoCommonArchitecture: 'allow' } },
  ],
  'images that constrain nothing': ['', 'amd64', 'placed amd64'],
  'within the schedulable ones': [
    'amd64 arm64 s390x',
    'amd64 s390x',
    'placed amd64',
    schedulable('amd64', 'arm64'),
  ],
  'none that is schedulable, and nothing known of the images': [
    undefined,
    's390x',
    'denied none',
    {
      ...schedulable('amd64'),
      says: /^there is no architecture of the schedulable ones \(amd64\), and of those that .* allows \(s390x\)$/,
    },
  ],
  'images that are not known, behind a gate': [
    undefined,
    'amd64 s390x',
    'gated amd64 s390x',
    { policy: { onUnknownImage: 'gate' } },
  ],
  'images that cannot be known': [
    unauthorized,
    'amd64 s390x',
    'allowed-unknown amd64 s390x',
    { policy: { onUnknownImage: 'allow' } },
  ],
  'the fallback, where it is allowed': [unauthorized, 'amd64 s390x', 'fallback s390x', fallback('s390x')],
  'the fallback, where it is not': [unauthorized, 'amd64', 'fallback amd64', fallback('arm64')],
  'a pod that chooses itself keeps its choice, without a word on its images': [
    'amd64 arm64',
    'amd64',
    'own-constraint',
    { spec: onArch('arm64'), told: false },
  ],
  'a DaemonSet': ['amd64 arm64', 'amd64', 'placed amd64', { template: 'DaemonSet' }],
};

for (const [name, [image, only, decided, more = {}]] of Object.entries(cases)) {
  test(name, async (t) => {
    const { policy, spec, template, told = true, says } = more;
    const known = image === undefined ? {} : { a: image };
    const input = inputOf(podOf(['a'], spec), known, { ...allowed(only), ...policy });
    const decision = decide({ ...input, ...(template && { template }) });
    t.equal(outcomeOf(decision), decided);
    const reasons = decision.reasons.filter(({ rule }) => rule === 'allowed-architectures');
    t.strictSame(
      reasons.map(({ message }) => message),
      told ? [`${origin} allows ${only.replace(' ', ', ')}`] : [],
    );
    if (!told) t.strictSame(decision.warnings, []);
    if (says) t.match(decision.message, says);
  });
}

test('a workload without an allowed architecture gets a warning', async (t) => {
  const input = inputOf(podOf(['a']), { a: 'amd64' }, allowed('s390x'));
  const { warnings } = decide({ ...input, template: 'workload' });
  t.match(warnings, [/cannot be placed: no architecture of those that PodPlacementConfig shop\/db allows/]);
});

test('nothing is required of a pod without such an object', async (t) => {
  const decision = decide(inputOf(podOf(['a']), { a: '' }));
  t.equal(decision.required, undefined);
  t.notOk(decision.reasons.some(({ rule }) => rule === 'allowed-architectures'));
});
