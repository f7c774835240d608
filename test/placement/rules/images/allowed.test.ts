/** Allowed architectures of custom resources restrict a pod, in addition to its images. */
import { test } from 'tap';
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import { decide } from '../../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../../src/placement/decision.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import { failed, inputOf, outcomeOf, podOf, type Known, onArch } from '../../../support/placement-input.ts';
import { like } from '../../../support/like.ts';

const origin = 'PodPlacementConfig shop/db';
const allowed = (only: string): Partial<Policy> => ({ allowed: { architectures: only.split(' '), origin } });

interface More {
  readonly policy?: Partial<Policy>;
  readonly spec?: Partial<PodSpec>;
  readonly template?: PlacementInput['template'];
  /** Whether the rule takes part. */
  readonly hasReason?: boolean;
  readonly message?: RegExp;
}
/** Architectures or error of the image; allowed architectures; the decision as `outcomeOf` writes it. */
type Case = readonly [image: Known[string] | undefined, only: string, decided: string, more?: More];

const unauthorized = failed('unauthorized');
const schedulable = (...schedulableArchitectures: string[]): More => ({
  policy: { schedulableArchitectures },
});
const fallback = (fallbackArchitecture: string): More => ({
  policy: { onUnknownImage: 'fallback', fallbackArchitecture },
});

const cases: Readonly<Record<string, Case>> = {
  'the intersection with the images': ['amd64 arm64 s390x', 'amd64 s390x', 'placed amd64 s390x'],
  'no architecture that the images lack': ['amd64', 'amd64 s390x', 'placed amd64'],
  'an empty intersection': [
    'amd64',
    's390x',
    'denied none',
    {
      message:
        /^no architecture of those that PodPlacementConfig shop\/db allows \(s390x\) can run all images: a has amd64$/,
    },
  ],
  'an empty intersection, admitted': [
    'amd64',
    's390x',
    'unconstrained',
    { policy: { onNoCommonArchitecture: 'allow' } },
  ],
  'images that constrain nothing': ['', 'amd64', 'placed amd64'],
  'within the schedulable architectures': [
    'amd64 arm64 s390x',
    'amd64 s390x',
    'placed amd64',
    schedulable('amd64', 'arm64'),
  ],
  'no schedulable architecture, and unknown images': [
    undefined,
    's390x',
    'denied none',
    {
      ...schedulable('amd64'),
      message:
        /^there is no architecture of the schedulable ones \(amd64\), and of those that .* allows \(s390x\)$/,
    },
  ],
  'unknown images, behind a gate': [
    undefined,
    'amd64 s390x',
    'gated amd64 s390x',
    { policy: { onUnknownImage: 'gate' } },
  ],
  'images that can never be known': [
    unauthorized,
    'amd64 s390x',
    'allowed-unknown amd64 s390x',
    { policy: { onUnknownImage: 'allow' } },
  ],
  'an allowed fallback': [unauthorized, 'amd64 s390x', 'fallback s390x', fallback('s390x')],
  'a fallback that is not allowed': [unauthorized, 'amd64', 'allowed-unknown amd64', fallback('arm64')],
  'a pod keeps its own constraint, without a message about its images': [
    'amd64 arm64',
    'amd64',
    'own-constraint',
    { spec: onArch('arm64'), hasReason: false },
  ],
  'a DaemonSet': ['amd64 arm64', 'amd64', 'placed amd64', { template: 'DaemonSet' }],
};

for (const [name, [image, only, decided, more = {}]] of Object.entries(cases)) {
  test(name, async (t) => {
    const { policy, spec, template, hasReason = true, message } = more;
    const known = image === undefined ? {} : { a: image };
    const input = inputOf(podOf(['a'], spec), known, { ...allowed(only), ...policy });
    const decision = decide({ ...input, ...(template && { template }) });
    t.equal(outcomeOf(decision), decided);
    const reasons = decision.reasons.filter(({ rule }) => rule === 'allowed-architectures');
    t.strictSame(
      reasons.map(({ message }) => message),
      hasReason ? [`${origin} allows ${only.replace(' ', ', ')}`] : [],
    );
    if (!hasReason) t.strictSame(decision.warnings, []);
    if (message) like(t, decision.message, message);
  });
}

test('a workload without an allowed architecture gets a warning', async (t) => {
  const input = inputOf(podOf(['a']), { a: 'amd64' }, allowed('s390x'));
  const { warnings } = decide({ ...input, template: 'workload' });
  like(t, warnings, [/cannot be placed: no architecture of those that PodPlacementConfig shop\/db allows/]);
});

test('without a custom resource, nothing more is required', async (t) => {
  const decision = decide(inputOf(podOf(['a']), { a: '' }));
  t.equal(decision.required, undefined);
  t.notOk(decision.reasons.some(({ rule }) => rule === 'allowed-architectures'));
});
