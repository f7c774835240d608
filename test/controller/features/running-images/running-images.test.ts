import t from 'tap';
import { runningImagesFeature } from '../../../../src/controller/features/running-images/running-images.ts';
import type { Fleet } from '../../../../src/fleet/fleet.ts';
import type { ImageFacts } from '../../../../src/images/facts/facts.ts';
import { facts } from '../../../support/placement-input.ts';
import { lead, startLeader } from '../../leader.ts';
import { until } from '../../../support/until.ts';

/** Facts of an image of Docker Hub. */
function known(name: string, platforms: string, more: Partial<ImageFacts> = {}): ImageFacts {
  const confirmedAt = new Date().toISOString();
  const image = `docker.io/library/${name}:latest`;
  const digest = `sha256:${'a'.repeat(64)}`;
  return facts(platforms, { image, digest, source: 'registry', confirmedAt, ...more });
}

const remembered = [
  known('both', 'linux/amd64 linux/arm64/v8'),
  known('twice', 'amd64 amd64'),
  known('odd', 'plan9/z80/turbo'),
  known('artifact', '', { error: { code: 'not-an-image', message: 'no platforms' } }),
];

const answer = Promise.withResolvers<void>();
const fleet = {
  readShared: (onFacts: (facts: ImageFacts) => void) =>
    answer.promise.then(() => onFacts(known('told', 's390x'))),
} as unknown as Fleet;

function pod(node: string, phase: string, ...images: string[]): object {
  return {
    spec: { nodeName: node, containers: images.map((image, index) => ({ name: `c${index}`, image })) },
    status: { phase },
  };
}

const path = (name: string): string => `/api/v1/namespaces/shop/pods/${name}`;

t.test('a leader counts images by platform and pods by architecture', async (t) => {
  const first = await startLeader(t);
  const { store } = first;
  store.put('/api/v1/nodes/a', { status: { nodeInfo: { architecture: 'amd64' } } });
  store.put('/api/v1/nodes/z', { status: { nodeInfo: { architecture: 'z80' } } });
  store.put(path('1'), pod('a', 'Running', 'both', 'twice', 'artifact'));
  store.put(path('2'), pod('a', 'Running', 'both', 'stranger', 'told'));
  store.put(path('3'), pod('z', 'Running', 'odd', 'NO/such:image:at:all'));
  store.put(path('4'), pod('gone', 'Running', 'both'));
  store.put(path('5'), pod('a', 'Succeeded', 'never-counted'));
  const test = await startLeader(t, { over: store, remembered, fleet });
  const done = lead(runningImagesFeature, test.leader);
  const image = (os: string, architecture: string, variant: string): Promise<number | undefined> =>
    test.series(`archwright_running_images{os="${os}",architecture="${architecture}",variant="${variant}"}`);
  const pods = (architecture: string): Promise<number | undefined> =>
    test.series(`archwright_running_pods{architecture="${architecture}"}`);
  const areUnknown = (count: number) => async () =>
    (await test.series('archwright_running_images_unknown')) === count;
  await until(areUnknown(3), 'the metrics, before the agents respond');
  answer.resolve();
  await until(areUnknown(2), 'the metrics with what the agents know');

  t.equal(await image('linux', 'amd64', 'none'), 2, 'an image counts once per platform');
  t.equal(await image('linux', 'arm64', 'v8'), 1);
  t.equal(await image('other', 'other', 'other'), 1, 'odd names are bounded');
  t.equal(await image('linux', 's390x', 'none'), 1, 'known to the agents');
  t.equal(await image('linux', 'riscv64', 'none'), 0);
  t.equal(await pods('amd64'), 2);
  t.equal(await pods('other'), 2, 'an odd architecture, and an unknown node');
  t.equal(await pods('arm64'), 0);

  test.depose();
  await done;
  t.equal(await image('linux', 'amd64', 'none'), 0, 'no value after leadership');
  t.equal(await pods('amd64'), 0);
  t.equal(await test.series('archwright_running_images_unknown'), 0);
});
