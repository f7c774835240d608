/**
 * Attack: a rogue agent lies about architectures, to have running pods evicted. Agents and fleet are real. Pods
 * that are not ready and pulled nothing remain at risk (docs/internals/security.md).
 */
import t, { type Test } from 'tap';
import { systemClock } from '../../../src/async/clock.ts';
import { createFactsOfPod } from '../../../src/cluster/facts-of-pod.ts';
import { noPullSecrets } from '../../../src/cluster/pull-secrets.ts';
import { bindFactsCounters } from '../../../src/controller/leadership/metrics.ts';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { FactsMemory } from '../../../src/images/memory/memory.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { image, setup, type Answer } from '../../fleet/fleet-setup.ts';
import { factsOf } from '../../fleet/support.ts';
import { multiArch, type Content } from '../../support/registry/content.ts';
import { evictions, putPod, startWorld } from './setup.ts';
import { silentLog } from '../../support/captured.ts';

const repository = 'registry.example/team/app';
const both = multiArch(['linux/amd64', 'linux/arm64']);
const amd = multiArch(['linux/amd64']);

function answers(content: Content, architectures: readonly string[], lie: Partial<ImageFacts> = {}): Answer {
  const platforms = architectures.map((architecture) => ({ os: 'linux', architecture }));
  const documents = [content.bytes.toString('base64')];
  return (body) => ({
    results: body.images.map(({ image: text }) =>
      factsOf(text, { digest: content.digest, platforms, ...(text.includes('@') && { documents }), ...lie }),
    ),
  });
}

/** The first of `facts` is for the owner of the image. The pod is on an arm64 node, and not ready. */
async function start(t: Test, facts: readonly Answer[], imageID: string) {
  const { fleet, requestCounts } = await setup(
    t,
    facts.map((each) => ({ facts: each })),
  );
  const memory = new FactsMemory({ source: fleet, log: silentLog, tagsAnswerForDigests: false });
  t.teardown(() => memory.close());
  const factsOfPod = createFactsOfPod({
    memory,
    pullSecrets: { mayHave: () => false, source: () => Promise.resolve(noPullSecrets) },
    counters: bindFactsCounters(createMetrics()),
    clock: systemClock,
    log: silentLog,
  });
  const world = await startWorld(t, { fleet, factsOfPod });
  putPod(world.store, 'web-a', { image, imageID });
  await world.afterGrace();
  return { world, requestCounts, evicted: world.store.received(evictions).length };
}

const honest = answers(both, ['amd64', 'arm64']);
const truth = answers(amd, ['amd64']);
const lies: Readonly<Record<string, Answer>> = {
  'the true digest': answers(both, ['amd64']),
  'the true digest, and no documents': answers(both, ['amd64'], { documents: [] }),
};

for (const [name, lie] of Object.entries(lies)) {
  t.test(`the owner lies about a tag with ${name}: pods that pulled their image stay`, async (t) => {
    const { evicted } = await start(t, [lie, honest, honest], `${repository}@${both.digest}`);
    t.equal(evicted, 0);
  });
}

t.test('the owner corrects its answer before the eviction: the pod stays', async (t) => {
  let lookups = 0;
  const first: Answer = (body, ...rest) => {
    lookups += 1;
    return lookups === 1 ? truth(body, ...rest) : honest(body, ...rest);
  };
  const { evicted } = await start(t, [first, honest], '');
  t.equal(lookups, 2, 'it is queried again');
  t.equal(evicted, 0);
});

t.test('a misplaced pod is evicted if the lookup before the eviction confirms it', async (t) => {
  for (const imageID of [
    `${repository}@${amd.digest}`,
    `docker-pullable://${repository}@${amd.digest}`,
    '',
  ]) {
    const { evicted, world, requestCounts } = await start(t, [truth, truth], imageID);
    t.equal(evicted, 1, imageID);
    t.match(world.events[0], { reason: 'MisplacedPodEvicted' });
    t.strictSame(requestCounts(), [2, 0], 'the owner is queried twice');
  }
});
