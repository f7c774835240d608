import { test } from 'tap';
import type { Container, Pod } from '../../src/kube/api/objects.ts';
import { newImagesOf, runningPodWarnings } from '../../src/placement/running-pod.ts';
import { factsFrom, failed, podOf } from '../support/placement-input.ts';

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

test('an ephemeral container that the node cannot run leads to a warning', async (t) => {
  const warnings = runningPodWarnings({
    pod: withDebug('debug'),
    oldPod: before,
    nodeArchitecture: 'arm64',
    facts,
  });
  t.strictSame(warnings, ['archwright: image debug cannot run here: it has amd64, the node is arm64']);
});

test('which other changes lead to a warning', async (t) => {
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

test('names in warnings are printable and bounded', async (t) => {
  const image = `debug\u001b[2J${'x'.repeat(400)}`;
  const warnings = runningPodWarnings({
    pod: withDebug(image),
    oldPod: before,
    nodeArchitecture: 'arm64',
    facts: factsFrom({ [image]: 'amd64' }),
  });
  t.ok(warnings.length === 1 && Buffer.byteLength(warnings[0] ?? '') <= 256);
  t.notMatch(warnings[0], /\p{C}/u);
});
