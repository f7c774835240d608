/** The images of a pod, and those that a change adds to a running one. */
import { test } from 'tap';
import type { Container, Pod, PodSpec } from '../../../src/kube/api/objects.ts';
import { imagesOf, pullPolicyOf } from '../../../src/placement/pod/images.ts';
import { newImagesOf, runningPodWarnings } from '../../../src/placement/running-pod.ts';
import { factsFrom, failed, podOf } from '../../support/placement-input.ts';

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

test('the pull policy of an image', async (t) => {
  for (const [image, written, expected] of policies)
    t.equal(pullPolicyOf(image, written), expected, `${image}, ${written ?? 'not set'}`);
});

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

const facts = factsFrom({
  app: 'amd64 arm64',
  debug: 'amd64',
  artifact: '',
  broken: failed('timeout'),
  win: 'windows/arm64',
});

function withDebug(...images: string[]): Pod {
  const ephemeralContainers: Container[] = images.map((image, index) => ({ name: `debug-${index}`, image }));
  return podOf(['app'], { nodeName: 'n1', ephemeralContainers });
}

const before = withDebug();

test('an image that the node cannot run leads to a warning, if it is new', async (t) => {
  const debugged = { pod: withDebug('debug'), oldPod: before, nodeArchitecture: 'arm64', facts };
  t.strictSame(runningPodWarnings(debugged), [
    'archwright: image debug cannot run here: it has amd64, the node is arm64',
  ]);
  const countWarnings = (pod: Pod, oldPod: Pod | undefined, nodeArchitecture: string | undefined): number =>
    runningPodWarnings({ pod, oldPod, nodeArchitecture, facts }).length;
  t.equal(countWarnings(withDebug('debug'), before, 'amd64'), 0, 'the node can run it');
  t.equal(countWarnings(withDebug('debug'), before, undefined), 0, 'an unknown node');
  t.equal(countWarnings(withDebug('unknown'), before, 'arm64'), 0, 'an unknown image');
  t.equal(countWarnings(withDebug('broken'), before, 'arm64'), 0, 'an image that cannot be inspected');
  t.equal(countWarnings(withDebug('artifact'), before, 'arm64'), 0, 'an artifact');
  t.equal(countWarnings(withDebug('win'), before, 'arm64'), 1, 'an image for another operating system');
  t.equal(countWarnings(withDebug('debug'), withDebug('debug'), 'arm64'), 0, 'no new container');
  t.equal(countWarnings(withDebug('debug', 'debug'), withDebug('debug'), 'arm64'), 1, 'a second container');
  t.equal(countWarnings(withDebug('debug'), undefined, 'arm64'), 1, 'without an old pod');
  const windows = { ...withDebug('win').spec, os: { name: 'windows' } };
  t.equal(countWarnings({ spec: windows }, before, 'arm64'), 0, 'its own operating system counts');
  const onNode = (image: string): Pod => podOf([image], { nodeName: 'n1' });
  t.equal(countWarnings(onNode('debug'), onNode('app'), 'arm64'), 1, 'a new image');
});

test('an update has the images of new and changed containers', async (t) => {
  const oldPod = podOf(['app', 'side'], { initContainers: [{ name: 'i', image: 'init' }] });
  const pod = podOf(['app', 'side:2'], {
    initContainers: [{ name: 'i', image: 'init:2' }],
    ephemeralContainers: [{ name: 'd', image: 'debug' }],
  });
  t.strictSame(
    newImagesOf(pod, oldPod).map(({ image }) => image),
    ['init:2', 'side:2', 'debug'],
  );
  t.strictSame(newImagesOf(oldPod, oldPod), []);
});

test('warnings are few, and their names printable and bounded', async (t) => {
  const all = { oldPod: undefined, nodeArchitecture: 'arm64', facts: () => factsFrom({ a: 'amd64' })('a') };
  const [warning = '', ...others] = runningPodWarnings({
    ...all,
    pod: podOf([`debug\u001b[2J${'x'.repeat(400)}`]),
  });
  t.ok(others.length === 0 && Buffer.byteLength(warning) <= 256);
  t.notMatch(warning, /\p{C}/u);
  const many = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  const bounded = runningPodWarnings({ ...all, pod: podOf(many) });
  t.equal(bounded.length, 8);
  t.match(bounded.at(-1), /13 more/);
});
