import { test } from 'tap';
import type { PodSpec } from '../../../../src/kube/api/objects.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import { decide } from '../../../../src/placement/decide.ts';
import { facts, failed, inputOf, outcomeOf, podOf, type Known } from '../../../support/placement-input.ts';

type Case = readonly [
  /** By name of the image. Each is the image of a container, unless the spec names it. */
  known: Known,
  /** As `outcomeOf` writes it. */
  decided: string,
  spec?: Partial<PodSpec>,
  policy?: Partial<Policy>,
];

const many = Array.from({ length: 40 }, (_, index) => `arch${String(index).padStart(2, '0')}`);
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
  'an artifact constrains nothing': [{ a: 'amd64 arm64', b: '' }, 'placed amd64 arm64', volumeB()],
  'a volume of an artifact constrains nothing': [
    { a: 'amd64 arm64', b: failed('not-an-image') },
    'placed amd64 arm64',
    volumeB(),
  ],
  'an artifact to run is unknown': [
    { a: 'amd64 arm64', b: failed('not-an-image') },
    'allowed-unknown amd64 arm64',
  ],
  'a mounted artifact to run is unknown': [{ b: failed('not-an-image') }, 'allowed-unknown', volumeB('b')],
  'an invalid reference': [{ a: 'arm64', 'B!': failed('invalid-reference') }, 'placed arm64'],
  'an image that is never pulled constrains nothing': [{ a: 's390x', b: 'amd64' }, 'placed amd64', neverA],
  'attestations do not count': [{ a: 'unknown/unknown amd64 linux/unknown unknown/arm64' }, 'placed amd64'],
  'only unknown platforms constrain nothing': [{ a: 'unknown/unknown unknown/arm64' }, 'unconstrained'],
  'a platform without a system': [{ a: platforms(['', 'arm64'], ['linux', 'amd64']) }, 'placed amd64'],
  "the pod's operating system counts": [{ a: 'linux/amd64 windows/arm64' }, 'placed arm64', windows],
  'bytecode runs on any architecture': [{ a: 'wasi/wasm', b: 'amd64 arm64' }, 'placed amd64 arm64'],
  'bytecode constrains nothing': [{ a: 'wasip1/wasm32' }, 'unconstrained'],
  'bytecode beside native code': [{ a: 'wasi/wasm linux/amd64' }, 'placed amd64'],
  'bytecode for any system, in a pod for Windows': [{ a: 'js/wasm linux/amd64' }, 'unconstrained', windows],
  'an image only for another operating system': [{ a: 'windows/amd64' }, 'denied none'],
  'variants count as one architecture': [{ a: 'linux/arm/v6 linux/arm/v7 arm64' }, 'placed arm arm64'],
  'variants without the architecture': [{ a: 'linux/arm/v6 linux/arm/v7' }, 'placed arm arm64'],
  'invalid label values are dropped': [{ a: `amd64 -x x- ${'y'.repeat(64)} a,b` }, 'placed amd64'],
  'a name of 63 characters is valid': [{ a: 'y'.repeat(63) }, `placed ${'y'.repeat(63)}`],
  'only invalid names: as for an artifact': [
    { a: platforms(['linux', 'a\nb'], ['linux', ''], ['', 'arm64']) },
    'unconstrained',
  ],
  'names of members of every object': [{ a: 'constructor toString' }, 'placed constructor toString'],
  'more than 16 architectures': [{ a: many.join(' ') }, `placed ${many.slice(0, 16).join(' ')}`],
  'two images with more than 16': [
    {
      a: `amd64 ${many.join(' ')}`,
      b: `amd64 ${many.slice(38).join(' ')} ${many.slice(0, 20).join('x ')}`,
    },
    'placed amd64 arch19 arch38 arch39',
  ],
  'schedulable architectures alone': [{ a: '' }, 'unconstrained', {}, schedulable('arm64')],
};

for (const [name, [known, decided, spec, policy]] of Object.entries(cases)) {
  test(`required architectures: ${name}`, async (t) => {
    const pod = podOf(Object.keys(known), spec);
    const decision = decide(inputOf(pod, known, policy));
    t.equal(outcomeOf(decision), decided);
  });
}

test('images that constrain nothing have a reason', async (t) => {
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

test('each image has the containers that use it, and why it is unknown', async (t) => {
  const { images } = decide(inputOf(podOf(['a', 'b', 'c']), { a: 'arm64', b: failed('rate-limited') }));
  t.strictSame(
    images.map(({ usedBy, unknown }) => [...usedBy, unknown]),
    [
      ['c0', undefined],
      ['c1', 'rate-limited'],
      ['c2', 'unknown'],
    ],
  );
});

test('the same facts serve pods of each operating system', async (t) => {
  const known = facts('linux/amd64 linux/arm64 windows/amd64');
  for (const os of ['linux', 'windows', 'linux', 'plan9']) {
    const input = { ...inputOf(podOf(['x'], { os: { name: os } }), {}), facts: () => known };
    const expected = { linux: ['amd64', 'arm64'], windows: ['amd64'] }[os] ?? [];
    t.strictSame(decide(input).images[0]?.architectures, expected, os);
  }
});
