import { test } from 'tap';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { decide } from '../../../src/placement/decide.ts';
import { facts, failed, inputOf, outcomeOf, podOf, type Known } from '../../support/placement-input.ts';

interface Case {
  readonly images?: string;
  readonly spec?: Partial<PodSpec>;
  readonly known: Known;
  readonly policy?: Partial<Policy>;
  /** As `outcomeOf` writes it. */
  readonly decided: string;
}

const many = Array.from({ length: 40 }, (_, index) => `arch${String(index).padStart(2, '0')}`);

const cases: Readonly<Record<string, Case>> = {
  'one image': { known: { a: 'arm64 amd64' }, decided: 'placed amd64 arm64' },
  'the intersection of three': {
    images: 'a b c',
    known: { a: 'amd64 arm64 s390x', b: 'arm64 s390x', c: 's390x amd64 arm64' },
    decided: 'placed arm64 s390x',
  },
  'three that share only what the first and the last have not in common with the second': {
    images: 'a b c',
    known: { a: 'amd64 arm64', b: 'arm64', c: 'amd64' },
    decided: 'denied none',
  },
  'init containers count': {
    spec: { initContainers: [{ name: 'i', image: 'b' }] },
    known: { a: 'amd64 arm64', b: 'amd64' },
    decided: 'placed amd64',
  },
  'sidecars count': {
    spec: { initContainers: [{ name: 'i', image: 'b', restartPolicy: 'Always' }] },
    known: { a: 'amd64 arm64', b: 'arm64' },
    decided: 'placed arm64',
  },
  'an image volume with platforms counts': {
    spec: { volumes: [{ name: 'v', image: { reference: 'b' } }] },
    known: { a: 'amd64 arm64', b: 'arm64' },
    decided: 'placed arm64',
  },
  'an artifact constrains nothing': {
    spec: { volumes: [{ name: 'v', image: { reference: 'b' } }] },
    known: { a: 'amd64 arm64', b: '' },
    decided: 'placed amd64 arm64',
  },
  'a volume that is no image constrains nothing': {
    spec: { volumes: [{ name: 'v', image: { reference: 'b' } }] },
    known: { a: 'amd64 arm64', b: failed('not-an-image') },
    decided: 'placed amd64 arm64',
  },
  'a container that is no image is unknown': {
    images: 'a b',
    known: { a: 'amd64 arm64', b: failed('not-an-image') },
    decided: 'fallback amd64 arm64',
  },
  'a volume of an image that a container runs as well is no mere volume': {
    images: 'b',
    spec: { volumes: [{ name: 'v', image: { reference: 'b' } }] },
    known: { b: failed('not-an-image') },
    decided: 'fallback',
  },
  'an invalid reference is left to the kubelet': {
    images: 'a B!',
    known: { a: 'arm64', 'B!': failed('invalid-reference') },
    decided: 'placed arm64',
  },
  'an image that is never pulled constrains nothing': {
    spec: {
      containers: [
        { name: 'c', image: 'a', imagePullPolicy: 'Never' },
        { name: 'd', image: 'b' },
      ],
    },
    known: { a: 's390x', b: 'amd64' },
    decided: 'placed amd64',
  },
  'attestations and unknown platforms do not count': {
    known: { a: 'unknown/unknown amd64 linux/unknown unknown/arm64' },
    decided: 'placed amd64',
  },
  'nothing but unknown platforms is no image': { known: { a: 'unknown/unknown' }, decided: 'unconstrained' },
  'a platform without an operating system does not count': {
    known: {
      a: facts('amd64', {
        platforms: [
          { os: '', architecture: 'arm64' },
          { os: 'linux', architecture: 'amd64' },
        ],
      }),
    },
    decided: 'placed amd64',
  },
  'another operating system does not count': {
    known: { a: 'linux/amd64 windows/arm64' },
    decided: 'placed amd64',
  },
  "the pod's operating system does": {
    spec: { os: { name: 'windows' } },
    known: { a: 'linux/amd64 windows/arm64' },
    decided: 'placed arm64',
  },
  'bytecode runs on any architecture': {
    images: 'a b',
    known: { a: 'wasi/wasm', b: 'amd64 arm64' },
    decided: 'placed amd64 arm64',
  },
  'bytecode alone requires nothing': { known: { a: 'wasip1/wasm32' }, decided: 'unconstrained' },
  'bytecode beside native code: the nodes take what is theirs': {
    known: { a: 'wasi/wasm linux/amd64' },
    decided: 'placed amd64',
  },
  'bytecode of any system, for a pod of any system': {
    spec: { os: { name: 'windows' } },
    known: { a: 'js/wasm linux/amd64' },
    decided: 'unconstrained',
  },
  'an image for another operating system only': { known: { a: 'windows/amd64' }, decided: 'denied none' },
  'variants are one architecture': {
    known: { a: 'linux/arm/v6 linux/arm/v7 arm64' },
    decided: 'placed arm arm64',
  },
  'without knowledge of nodes, what any runtime takes': {
    known: { a: 'linux/arm/v6 linux/arm/v7' },
    decided: 'placed arm arm64',
  },
  'names that are no label value are dropped': {
    known: { a: `amd64 -x x- ${'y'.repeat(64)} a,b` },
    decided: 'placed amd64',
  },
  'a name of 63 characters is one': { known: { a: 'y'.repeat(63) }, decided: `placed ${'y'.repeat(63)}` },
  'hostile names only: as if it were no image': {
    known: {
      a: facts('', {
        platforms: [
          { os: 'linux', architecture: 'a\nb' },
          { os: 'linux', architecture: '' },
        ],
      }),
    },
    decided: 'unconstrained',
  },
  'names of things that every object has': {
    known: { a: 'constructor toString' },
    decided: 'placed constructor toString',
  },
  'far too many architectures': {
    known: { a: many.join(' ') },
    decided: `placed ${many.slice(0, 16).join(' ')}`,
  },
  'what two with far too many architectures share': {
    images: 'a b',
    known: {
      a: `amd64 ${many.join(' ')}`,
      b: `amd64 ${many.slice(38).join(' ')} ${many.slice(0, 20).join('x ')}`,
    },
    decided: 'placed amd64 arch19 arch38 arch39',
  },
  'only schedulable architectures': {
    known: { a: 'amd64 arm64 s390x' },
    policy: { schedulableArchitectures: ['arm64', 'amd64', 'riscv64'] },
    decided: 'placed amd64 arm64',
  },
  'none of them schedulable': {
    known: { a: 's390x' },
    policy: { schedulableArchitectures: ['arm64'] },
    decided: 'denied none',
  },
  'schedulable architectures alone require nothing': {
    known: { a: '' },
    policy: { schedulableArchitectures: ['arm64'] },
    decided: 'unconstrained',
  },
  'stale facts are facts': { known: { a: facts('arm64', { stale: true }) }, decided: 'placed arm64' },
};

for (const [name, { images = 'a', spec, known, policy, decided }] of Object.entries(cases)) {
  test(`required architectures: ${name}`, async (t) => {
    const pod = podOf(images.split(' '), spec);
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
