/** A pod is evicted only if another lookup confirms that its images cannot run on the node. */
import t from 'tap';
import type { PodFactsRequest } from '../../../../src/cluster/facts-of-pod.ts';
import type { ImageFacts } from '../../../../src/images/facts/facts.ts';
import { facts, failed } from '../../../support/placement-input.ts';
import { factsByImage } from '../../leader.ts';
import { digest, evictions, known, putPod, startWorld } from './setup.ts';

const cases: readonly [name: string, confirmed: ImageFacts | undefined, isEvicted: boolean][] = [
  ['confirms', known['app:1'], true],
  ['says that the tag was pushed again', facts('amd64 arm64', { digest: digest('c') }), false],
  ['fails', failed('timeout'), false],
  ['gives older facts', facts('amd64', { digest: digest('a'), stale: true }), false],
  ['does not end', undefined, false],
];

for (const [name, confirmed, isEvicted] of cases) {
  t.test(`the lookup before an eviction ${name}: ${isEvicted ? 'evicted' : 'stays'}`, async (t) => {
    const requests: PodFactsRequest[] = [];
    const world = await startWorld(t, {
      factsOfPod: (request) => {
        const { uses, maxAgeMs } = request;
        if (maxAgeMs !== undefined) requests.push(request);
        const factsOf = (image: string) => (maxAgeMs === undefined ? known[image] : confirmed);
        return Promise.resolve(factsByImage(uses, factsOf));
      },
    });
    putPod(world.store, 'web-a', { imageID: '' });
    await world.afterGrace();
    t.equal(world.store.received(evictions).length, isEvicted ? 1 : 0);
    t.strictSame(
      requests.map(({ uses, maxAgeMs }) => [uses.map(({ image }) => image), maxAgeMs]),
      [[['app:1'], 5000]],
    );
  });
}

t.test('the digest that the node pulled is looked up in place of the tag', async (t) => {
  const pulled = `docker.io/library/app@${digest('a')}`;
  const images: string[] = [];
  const world = await startWorld(t, {
    factsOfPod: ({ uses, maxAgeMs }) => {
      if (maxAgeMs !== undefined) images.push(...uses.map(({ image }) => image));
      return Promise.resolve(factsByImage(uses, () => known['app:1']));
    },
  });
  putPod(world.store, 'web-a', { imageID: `docker-pullable://${pulled}` });
  await world.afterGrace();
  t.strictSame(images, [pulled]);
  t.equal(world.store.received(evictions).length, 1);
});
