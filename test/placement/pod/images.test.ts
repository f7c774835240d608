import { test } from 'tap';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import { imagesOf, pullPolicyOf } from '../../../src/placement/pod/images.ts';
import { decide } from '../../../src/placement/decide.ts';
import { inputOf, podOf } from '../../support/placement-input.ts';

const digest = `sha256:${'0'.repeat(64)}`;

const policies: readonly (readonly [image: string, written: string | undefined, expected: string])[] = [
  ['nginx', undefined, 'Always'],
  ['nginx:latest', undefined, 'Always'],
  ['nginx:1', undefined, 'IfNotPresent'],
  ['nginx:latest-alpine', undefined, 'IfNotPresent'],
  ['localhost:5000/nginx', undefined, 'Always'],
  ['localhost:5000/nginx:1', undefined, 'IfNotPresent'],
  ['localhost:5000/latest', undefined, 'Always'],
  [`nginx@${digest}`, undefined, 'IfNotPresent'],
  [`nginx:1@${digest}`, undefined, 'IfNotPresent'],
  [`nginx:latest@${digest}`, undefined, 'Always'],
  ['nginx:1', 'Always', 'Always'],
  ['nginx', 'IfNotPresent', 'IfNotPresent'],
  ['nginx', 'Never', 'Never'],
  ['nginx:1', 'nonsense', 'IfNotPresent'],
  ['nginx', '', 'Always'],
];

for (const [image, written, expected] of policies) {
  test(`pull policy of ${image}, ${written ?? 'not set'}`, async (t) => {
    t.equal(pullPolicyOf(image, written), expected);
  });
}

test('init containers, sidecars, containers and image volumes count; ephemeral containers do not', async (t) => {
  const spec: PodSpec = {
    initContainers: [
      { name: 'init', image: 'init:1' },
      { name: 'mesh', image: 'mesh:1', restartPolicy: 'Always' },
    ],
    containers: [{ name: 'app', image: 'app:1' }],
    ephemeralContainers: [{ name: 'debug', image: 'debug:1' }],
    volumes: [
      { name: 'model', image: { reference: 'model:1' } },
      { name: 'empty' },
      { name: 'hole', image: {} },
    ],
  };
  t.strictSame(
    imagesOf(spec).map(({ image, usedBy, volumeOnly }) => [image, usedBy, volumeOnly]),
    [
      ['init:1', ['init'], false],
      ['mesh:1', ['mesh'], false],
      ['app:1', ['app'], false],
      ['model:1', ['model'], true],
    ],
  );
});

test('an image is listed once, with all of its users and the strictest pull policy', async (t) => {
  const spec: PodSpec = {
    initContainers: [{ name: 'a', image: 'x:1', imagePullPolicy: 'Never' }],
    containers: [
      { name: 'b', image: 'x:1', imagePullPolicy: 'Always' },
      { name: 'c', image: 'x:1' },
    ],
    volumes: [{ name: 'v', image: { reference: 'x:1', pullPolicy: 'IfNotPresent' } }],
  };
  t.strictSame(imagesOf(spec), [
    { image: 'x:1', usedBy: ['a', 'b', 'c', 'v'], pullPolicy: 'Always', volumeOnly: false },
  ]);
});

test('null lists and containers without an image are left to validation', async (t) => {
  const spec = { initContainers: null, containers: [{ name: 'c', image: '' }, { name: 'd' }], volumes: null };
  t.strictSame(imagesOf(spec as unknown as PodSpec), []);
  t.strictSame(imagesOf({} as PodSpec), []);
});

test('ten thousand containers are processed in linear time', async (t) => {
  const images = Array.from({ length: 10_000 }, (_, index) => `registry.example/image-${index % 5000}:1`);
  let lookups = 0;
  const input = inputOf(podOf(images));
  const decision = decide({
    ...input,
    facts: () => {
      lookups += 1;
      return undefined;
    },
  });
  t.equal(lookups, 5000);
  t.equal(decision.images.length, 5000);
  t.equal(decision.outcome, 'gated');
});
