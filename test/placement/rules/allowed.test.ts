/** What a custom resource leaves to the pod: a bound besides the images, never more than they have. */
import { test } from 'tap';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../src/placement/decision.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { failed, inputOf, outcomeOf, podOf, type Known } from '../../support/placement-input.ts';

const origin = 'PodPlacementConfig shop/db';
const allowed = (only: string): Partial<Policy> => ({ allowed: { architectures: only.split(' '), origin } });

interface Case {
  readonly known: Known;
  /** What the custom resource allows. */
  readonly only: string;
  readonly policy?: Partial<Policy>;
  readonly spec?: Partial<PodSpec>;
  readonly template?: PlacementInput['template'];
  /** As `outcomeOf` writes it. */
  readonly decided: string;
  /** Whether the rule takes part. */
  readonly told?: boolean;
  readonly says?: RegExp;
}

const cases: Readonly<Record<string, Case>> = {
  'of what the images have': {
    known: { a: 'amd64 arm64 s390x' },
    only: 'amd64 s390x',
    decided: 'placed amd64 s390x',
  },
  'never what they lack': { known: { a: 'amd64' }, only: 'amd64 s390x', decided: 'placed amd64' },
  'nothing of both': {
    known: { a: 'amd64' },
    only: 's390x',
    decided: 'denied none',
    says: /^no architecture of those that PodPlacementConfig shop\/db allows \(s390x\) can run all images: a has amd64$/,
  },
  'nothing of both, which may be': {
    known: { a: 'amd64' },
    only: 's390x',
    policy: { onNoCommonArchitecture: 'allow' },
    decided: 'unconstrained',
  },
  'images that constrain nothing': { known: { a: '' }, only: 'amd64', decided: 'placed amd64' },
  'within the schedulable ones': {
    known: { a: 'amd64 arm64 s390x' },
    only: 'amd64 s390x',
    policy: { schedulableArchitectures: ['amd64', 'arm64'] },
    decided: 'placed amd64',
  },
  'none that is schedulable, and nothing known of the images': {
    known: {},
    only: 's390x',
    policy: { schedulableArchitectures: ['amd64'] },
    decided: 'denied none',
    says: /^there is no architecture of the schedulable ones \(amd64\), and of those that .* allows \(s390x\)$/,
  },
  'images that are not known, behind a gate': {
    known: {},
    only: 'amd64 s390x',
    policy: { onUnknownImage: 'gate' },
    decided: 'gated amd64 s390x',
  },
  'images that cannot be known': {
    known: { a: failed('unauthorized') },
    only: 'amd64 s390x',
    policy: { onUnknownImage: 'allow' },
    decided: 'allowed-unknown amd64 s390x',
  },
  'the fallback, where it is allowed': {
    known: { a: failed('unauthorized') },
    only: 'amd64 s390x',
    policy: { onUnknownImage: 'fallback', fallbackArchitecture: 's390x' },
    decided: 'fallback s390x',
  },
  'the fallback, where it is not': {
    known: { a: failed('unauthorized') },
    only: 'amd64',
    policy: { onUnknownImage: 'fallback', fallbackArchitecture: 'arm64' },
    decided: 'fallback amd64',
  },
  'a pod that chooses itself keeps its choice, without a word on its images': {
    known: { a: 'amd64 arm64' },
    only: 'amd64',
    spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } },
    decided: 'own-constraint',
    told: false,
  },
  'a DaemonSet': {
    known: { a: 'amd64 arm64' },
    only: 'amd64',
    template: 'DaemonSet',
    decided: 'placed amd64',
  },
};

for (const [name, { known, only, policy, spec, template, decided, told = true, says }] of Object.entries(
  cases,
)) {
  test(name, async (t) => {
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
