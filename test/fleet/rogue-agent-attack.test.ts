/**
 * Attacks of a compromised node: its agent has a valid certificate, and answers what it wants. The receiver is a webhook's memory
 * over a fleet.
 */
import t, { type Test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { staticDiscovery } from '../../src/fleet/discovery/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import { createOwnerOf } from '../../src/fleet/groups/rendezvous.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { defaultFreshness } from '../../src/images/memory/freshness.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import {
  connect,
  createPki,
  factsOf,
  questionOf,
  silentLog,
  startScripted,
  type ScriptedAgent,
} from './support.ts';

const never = new AbortController().signal;
const images = Array.from({ length: 60 }, (_, index) => `registry.example/team/app-${index}:1`);
const lie = { platforms: [{ os: 'linux', architecture: 's390x' }], freshUntil: '2999-01-01T00:00:00.000Z' };

/** One rogue agent among honest ones, and a memory that has just warmed up. */
async function start(t: Test, script: ScriptedAgent['script']) {
  const pki = await createPki(t);
  const agents = await Promise.all([1, 2, 3, 4].map(() => startScripted(t, pki)));
  const [rogue] = agents as [ScriptedAgent];
  Object.assign(rogue.script, script);
  const metrics = createMetrics();
  const fleet = createFleet({
    discovery: staticDiscovery(agents.map(({ url }) => url)),
    connection: await connect(t, pki),
    clock: systemClock,
    log: silentLog,
    metrics,
  });
  t.teardown(() => fleet.close());
  const memory = new FactsMemory({ source: fleet, log: silentLog });
  t.teardown(() => memory.close());
  const warmed: ImageFacts[] = [];
  for await (const facts of fleet.shared(never)) {
    warmed.push(facts);
    memory.learn(facts);
  }
  const ownerOf = createOwnerOf(agents.map(({ url }) => ({ url })));
  const owns = (image: string): boolean => ownerOf(parseReference(image).repository)?.url === rogue.url;
  return {
    memory,
    warmed,
    owned: images.filter(owns),
    foreign: images.filter((image) => !owns(image)).slice(0, 20),
    lookup: (image: string) => memory.lookup(questionOf(image), { signal: never }),
    rejected: async (reason: string): Promise<number> => {
      const sample = `archwright_fleet_rejected_facts_total{reason="${reason}"} `;
      const line = (await metrics.render()).split('\n').find((text) => text.startsWith(sample));
      return Number(line?.slice(sample.length));
    },
  };
}

const isLie = ({ platforms }: ImageFacts): boolean =>
  platforms.some(({ architecture }) => architecture === 's390x');

t.test(
  'a rogue agent streams facts of all images at warm-up: 0 of 20 foreign images are placed',
  async (t) => {
    const { memory, warmed, foreign, lookup, rejected } = await start(t, {
      known: (response) =>
        void response.end(images.map((image) => `${JSON.stringify(factsOf(image, lie))}\n`).join('')),
      facts: ({ images: asked }) => ({ results: asked.map(({ image }) => factsOf(image, lie)) }),
    });
    t.equal(foreign.length, 20);
    t.ok(warmed.every(({ image }) => !foreign.includes(image)));
    t.equal(foreign.filter((image) => memory.recall(questionOf(image))).length, 0);
    t.equal(await rejected('not-owner'), images.length - warmed.length);
    const answers = await Promise.all(foreign.map(lookup));
    t.equal(answers.filter(isLie).length, 0);
    t.notOk(answers.find(({ error }) => error));
  },
);

t.test('a rogue agent answers with facts that never expire: the receiver bounds them', async (t) => {
  const { warmed, owned, lookup } = await start(t, {
    known: (response) =>
      void response.end(images.map((image) => `${JSON.stringify(factsOf(image, lie))}\n`).join('')),
    facts: ({ images: asked }) => ({ results: asked.map(({ image }) => factsOf(image, lie)) }),
  });
  t.ok(owned.length > 0);
  const [one = ''] = owned;
  const answer = await lookup(one.replace(':1', ':2'));
  t.equal(answer.source, 'registry', 'it was not in the warm-up');
  const bound = Date.now() + defaultFreshness.revalidateIntervalMs;
  for (const { freshUntil } of [answer, ...warmed]) t.ok(Date.parse(freshUntil) <= bound, freshUntil);
});
