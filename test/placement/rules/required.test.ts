import { test } from 'tap';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { decide } from '../../../src/placement/decide.ts';
import { facts, failed, inputOf, outcomeOf, podOf, type Known } from '../../support/placement-input.ts';

type Case = readonly [
  /** By image; each is one of a container, but those that the spec names. */
  known: Known,
  /** As `outcomeOf` writes it. */
  decided: string,
  spec?: Partial<PodSpec>,
  policy?: Partial<Policy>,
];

const many = Array.from({ length: 40 }, (_, index) => `arch${String(index).padStart(2, '0')}`);
const initB = (more: object = {}): Partial<PodSpec> => ({
  containers: [{ name: 'c', image: 'a' }],
  initContainers: [{ name: 'i', image: 'b', ...more }],
});
const volumeB = (image = 'a'): Partial<PodSpec> => ({
  containers: [{ name: 'c', image }],
  volumes: [{ name: 'v', image: { reference: 'b' } }],
});
const neverA: Partial<PodSpec> = {
  containers: [
    { name: 'c', image: 'a', imagePullPolicy: 'Never' },
    { name: 'd', image: 'b' },
  ],
};
const windows: Partial<PodSpec> = { os: { name: 'windows' } };
const schedulable = (...schedulableArchitectures: string[]) => ({ schedulableArchitectures });
const platforms = (...all: (readonly [os: string, architecture: string])[]): Known[string] =>
  facts('', { platforms: all.map(([os, architecture]) => ({ os, architecture })) });

const cases: Readonly<Record<string, Case>> = {
  'one image': [{ a: 'arm64 amd64' }, 'placed amd64 arm64'],
  'the intersection of three': [
    { a: 'amd64 arm64 s390x', b: 'arm64 s390x', c: 's390x amd64 arm64' },
    'placed arm64 s390x',
  ],
  'three that share only what the first and the last have not in common with the second': [
    { a: 'amd64 arm64', b: 'arm64', c: 'amd64' },
    'denied none',
  ],
  'init containers count': [{ a: 'amd64 arm64', b: 'amd64' }, 'placed amd64', initB()],
  'sidecars count': [{ a: 'amd64 arm64', b: 'arm64' }, 'placed arm64', initB({ restartPolicy: 'Always' })],
  'an image volume with platforms counts': [{ a: 'amd64 arm64', b: 'arm64' }, 'placed arm64', volumeB()],
  'an artifact constrains nothing': [{ a: 'amd64 arm64', b: '' }, 'placed amd64 arm64', volumeB()],
  'a volume that is no image constrains nothing': [
    { a: 'amd64 arm64', b: failed('not-an-image') },
    'placed amd64 arm64',
    volumeB(),
  ],
  'a container that is no image is unknown': [
    { a: 'amd64 arm64', b: failed('not-an-image') },
    'fallback amd64 arm64',
  ],
  'a volume of an image that a container runs as well is no mere volume': [
    { b: failed('not-an-image') },
    'fallback',
    volumeB('b'),
  ],
  'an invalid reference is left to the kubelet': [
    { a: 'arm64', 'B!': failed('invalid-reference') },
    'placed arm64',
  ],
  'an image that is never pulled constrains nothing': [{ a: 's390x', b: 'amd64' }, 'placed amd64', neverA],
  'attestations and unknown platforms do not count': [
    { a: 'unknown/unknown amd64 linux/unknown unknown/arm64' },
    'placed amd64',
  ],
  'nothing but unknown platforms is no image': [{ a: 'unknown/unknown' }, 'unconstrained'],
  'a platform without an operating system does not count': [
    { a: platforms(['', 'arm64'], ['linux', 'amd64']) },
    'placed amd64',
  ],
  'another operating system does not count': [{ a: 'linux/amd64 windows/arm64' }, 'placed amd64'],
  "the pod's operating system does": [{ a: 'linux/amd64 windows/arm64' }, 'placed arm64', windows],
  'bytecode runs on any architecture': [{ a: 'wasi/wasm', b: 'amd64 arm64' }, 'placed amd64 arm64'],
  'bytecode alone requires nothing': [{ a: 'wasip1/wasm32' }, 'unconstrained'],
  'bytecode beside native code: the nodes take what is theirs': [
    { a: 'wasi/wasm linux/amd64' },
    'placed amd64',
  ],
  'bytecode of any system, for a pod of any system': [{ a: 'js/wasm linux/amd64' }, 'unconstrained', windows],
  'an image for another operating system only': [{ a: 'windows/amd64' }, 'denied none'],
  'variants are one architecture': [{ a: 'linux/arm/v6 linux/arm/v7 arm64' }, 'placed arm arm64'],
  'without knowledge of nodes, what any runtime takes': [
    { a: 'linux/arm/v6 linux/arm/v7' },
    'placed arm arm64',
  ],
  'names that are no label value are dropped': [{ a: `amd64 -x x- ${'y'.repeat(64)} a,b` }, 'placed amd64'],
  'a name of 63 characters is one': [{ a: 'y'.repeat(63) }, `placed ${'y'.repeat(63)}`],
  'hostile names only: as if it were no image': [
    { a: platforms(['linux', 'a\nb'], ['linux', '']) },
    'unconstrained',
  ],
  'names of things that every object has': [{ a: 'constructor toString' }, 'placed constructor toString'],
  'far too many architectures': [{ a: many.join(' ') }, `placed ${many.slice(0, 16).join(' ')}`],
  'what two with far too many architectures share': [
    {
      a: `amd64 ${many.join(' ')}`,
      b: `amd64 ${many.slice(38).join(' ')} ${many.slice(0, 20).join('x ')}`,
    },
    'placed amd64 arch19 arch38 arch39',
  ],
  'only schedulable architectures': [
    { a: 'amd64 arm64 s390x' },
    'placed amd64 arm64',
    {},
    schedulable('arm64', 'amd64', 'riscv64'),
  ],
  'none of them schedulable': [{ a: 's390x' }, 'denied none', {}, schedulable('arm64')],
  'schedulable architectures alone require nothing': [{ a: '' }, 'unconstrained', {}, schedulable('arm64')],
  'stale facts are facts': [{ a: facts('arm64', { stale: true }) }, 'placed arm64'],
};

for (const [name, [known, decided, spec, policy]] of Object.entries(cases)) {
  test(`required architectures: ${name}`, async (t) => {
    const pod = podOf(Object.keys(known), spec);
    const decision = decide(inputOf(pod, known, policy));
    t.equal(outcomeOf(decision), decided);
  });
}

test('what constrains nothing says why', async (t) => {
  const { reasons } = decide(
    inputOf(podOf(['a', 'b', 'B!'], { volumes: [{ name: 'v', image: { reference: 'c' } }] }), {
      a: 'wasi/wasm',
      b: '',
      'B!': failed('invalid-reference'),
      c: failed('not-an-image'),
    }),
  );
  t.strictSame(
    reasons.filter(({ rule }) => rule === 'image-constrains-nothing').map(({ message }) => message),
    ['a: it is WebAssembly', 'b: it has no platform', 'B!: invalid-reference', 'c: not-an-image'],
  );
});

test('each image has its verdict', async (t) => {
  const decision = decide(
    inputOf(podOf(['a', 'b', 'c', 'd']), { a: 'arm64 amd64', b: failed('rate-limited'), d: '' }),
  );
  t.strictSame(
    decision.images.map(({ image, usedBy, architectures, unknown }) => [
      image,
      usedBy,
      architectures,
      unknown,
    ]),
    [
      ['a', ['c0'], ['amd64', 'arm64'], undefined],
      ['b', ['c1'], undefined, 'rate-limited'],
      ['c', ['c2'], undefined, 'unknown'],
      ['d', ['c3'], undefined, undefined],
    ],
  );
});

test('facts serve pods of every operating system in turn', async (t) => {
  const known = facts('linux/amd64 linux/arm64 windows/amd64');
  for (const os of ['linux', 'windows', 'linux', 'plan9']) {
    const input = { ...inputOf(podOf(['x'], { os: { name: os } }), {}), facts: () => known };
    const expected = { linux: ['amd64', 'arm64'], windows: ['amd64'] }[os] ?? [];
    t.strictSame(decide(input).images[0]?.architectures, expected, os);
  }
});
