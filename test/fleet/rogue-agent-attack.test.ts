/** A compromised node: its agent has a valid certificate and lies to the memory of a webhook. */
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
import { image, multiArch } from '../support/registry/content.ts';
import { connect, createPki, factsOf, requestFor, startScripted, type ScriptedAgent } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { silentLog } from '../support/captured.ts';

const images = Array.from({ length: 60 }, (_, index) => `registry.example/team/app-${index}:1`);
const lie = { platforms: [{ os: 'linux', architecture: 's390x' }], freshUntil: '2999-01-01T00:00:00.000Z' };

const byDigest = Array.from({ length: 20 }, (_, index) => {
  const content = multiArch(['linux/amd64', 'linux/arm64'], { label: `app-${index}` });
  return { content, image: `registry.example/team/app-${index}@${content.digest}` };
});
const trueFacts = (image: string): ImageFacts => {
  const content = byDigest.find((one) => one.image === image)?.content;
  return factsOf(image, content && { digest: content.digest, documents: [content.bytes.toString('base64')] });
};
/** The image that the attacker passes off. */
const forged = image('linux/s390x');
const forgedDocuments = [forged, ...forged.blobs].map(({ bytes }) => bytes.toString('base64'));

/** One rogue agent among honest ones, and a memory that has just warmed up. */
async function start(t: Test, script: ScriptedAgent['script']) {
  const pki = await createPki(t);
  const agents = await Promise.all([1, 2, 3, 4].map(() => startScripted(t, pki)));
  const [rogue, ...honest] = agents as [ScriptedAgent, ...ScriptedAgent[]];
  for (const agent of honest)
    agent.script.facts = ({ images }) => ({ results: images.map((one) => trueFacts(one.image)) });
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
  const memory = new FactsMemory({ source: fleet, log: silentLog, tagsAnswerForDigests: false });
  t.teardown(() => memory.close());
  const warmed: ImageFacts[] = [];
  for await (const facts of fleet.shared(neverAborted)) {
    warmed.push(facts);
    memory.learn(facts);
  }
  const ownerOf = createOwnerOf(agents.map(({ url }) => ({ url })));
  const owns = (image: string): boolean => ownerOf(parseReference(image).repository)?.url === rogue.url;
  return {
    rogue,
    owns,
    memory,
    warmed,
    owned: images.filter(owns),
    foreign: images.filter((image) => !owns(image)).slice(0, 20),
    lookup: (image: string) => memory.lookup(requestFor(image), { signal: neverAborted }),
    rejected: async (reason: string): Promise<number> => {
      const sample = `archwright_fleet_rejected_facts_total{reason="${reason}"} `;
      const line = (await metrics.render()).split('\n').find((text) => text.startsWith(sample));
      return Number(line?.slice(sample.length));
    },
  };
}

const isLie = ({ platforms }: ImageFacts): boolean =>
  platforms.some(({ architecture }) => architecture === 's390x');

/** Claims all images, in the warm-up and in lookups. */
const lying: ScriptedAgent['script'] = {
  known: (response) =>
    void response.end(images.map((image) => `${JSON.stringify(factsOf(image, lie))}\n`).join('')),
  facts: ({ images }) => ({ results: images.map(({ image }) => factsOf(image, lie)) }),
};

t.test('attack: facts of repositories that the agent does not own are dropped at warm-up', async (t) => {
  const { memory, warmed, foreign, lookup, rejected } = await start(t, lying);
  t.equal(foreign.length, 20);
  t.ok(warmed.every(({ image }) => !foreign.includes(image)));
  t.equal(foreign.filter((image) => memory.recall(requestFor(image))).length, 0);
  t.equal(await rejected('not-owner'), images.length - warmed.length);
  const answers = await Promise.all(foreign.map(lookup));
  t.equal(answers.filter(isLie).length, 0);
  t.notOk(answers.find(({ error }) => error));
});

t.test('attack: facts that never expire get the usual lifetime', async (t) => {
  const { warmed, owned, lookup } = await start(t, lying);
  t.ok(owned.length > 0);
  const [one = ''] = owned;
  const answer = await lookup(one.replace(':1', ':2'));
  t.equal(answer.source, 'registry', 'not part of the warm-up');
  const bound = Date.now() + defaultFreshness.revalidateIntervalMs;
  for (const { freshUntil } of [answer, ...warmed]) t.ok(Date.parse(freshUntil) <= bound, freshUntil);
});

const lies: Readonly<Record<string, (text: string) => Partial<ImageFacts>>> = {
  'no documents': () => lie,
  'documents of another image': () => ({ ...lie, documents: forgedDocuments }),
  'the digest of another image': () => ({ ...lie, digest: forged.digest, documents: forgedDocuments }),
  'an override': () => ({ ...lie, source: 'override', documents: forgedDocuments }),
  'true documents, other platforms': (text) => ({ ...trueFacts(text), ...lie }),
  garbage: () => ({ ...lie, documents: ['{', '', 'e30='] }),
};

for (const [name, lieAbout] of Object.entries(lies)) {
  t.test(`attack: facts of a digest need proof: ${name}`, async (t) => {
    const about = (text: string): ImageFacts => factsOf(text, lieAbout(text));
    const { memory, rogue, owns, lookup, rejected } = await start(t, {
      known: (response) =>
        void response.end(byDigest.map((one) => `${JSON.stringify(about(one.image))}\n`).join('')),
      facts: ({ images }) => ({ results: images.map((one) => about(one.image)) }),
    });
    const isTrue = name.startsWith('true');
    t.equal(
      byDigest.filter((one) => memory.recall(requestFor(one.image))).length,
      isTrue ? byDigest.filter((one) => owns(one.image)).length : 0,
    );
    const answers = await Promise.all(byDigest.map((one) => lookup(one.image)));
    t.equal(answers.filter(isLie).length, 0);
    for (const { platforms } of answers)
      t.equal(platforms.length, 2, 'from another agent, or from the documents');
    if (isTrue) return;
    t.ok(rogue.requests.length > 0);
    t.ok((await rejected('no-proof')) >= rogue.requests.length);
  });
}

t.test('attack: facts of a tag do not serve lookups of its digest', async (t) => {
  const [{ image: text, content }] = byDigest as [(typeof byDigest)[0]];
  const tag = text.replace(/@.*/u, ':1');
  const { memory, lookup } = await start(t, {});
  memory.learn(factsOf(tag, { ...lie, digest: content.digest }));
  t.ok(memory.recall(requestFor(tag)));
  t.notOk(isLie(await lookup(text)));
});

t.test('attack: an endless answer is cut, and another agent answers', async (t) => {
  let sent = 0;
  const flood: ScriptedAgent['script']['facts'] = (_, response) => {
    const chunk = Buffer.alloc(65_536, 'A');
    response.write('{"documents":["');
    const more = (): void => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      if (!response.destroyed) response.once('drain', more);
    };
    more();
    return undefined;
  };
  const { rogue, lookup } = await start(t, { facts: flood });
  const answers = await Promise.all(byDigest.map((one) => lookup(one.image)));
  for (const { platforms } of answers) t.equal(platforms.length, 2);
  t.ok(rogue.requests.length > 0);
  t.ok(sent / rogue.requests.length < 4 * 1_048_576, `${sent} bytes in ${rogue.requests.length} answers`);
});
