/** A compromised node: its agent has a valid certificate and lies to the cache of a webhook. */
import t, { type Test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { factsOf, requestFor } from '../support/facts.ts';
import { ownersOf, startFleet } from './fleet-setup.ts';
import { createPki, startScripted, type ScriptedAgent } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { silentLog } from '../support/captured.ts';

const images = Array.from({ length: 60 }, (_, index) => `registry.example/team/app-${index}:1`);
const lie = { platforms: [{ os: 'linux', architecture: 's390x' }], confirmedAt: '2999-01-01T00:00:00.000Z' };

/** One rogue agent among honest ones, and a cache that has just warmed up. */
async function start(t: Test, script: ScriptedAgent['script']) {
  const pki = await createPki(t);
  const agents = await Promise.all([1, 2, 3, 4].map(() => startScripted(t, pki)));
  const [rogue] = agents as [ScriptedAgent, ...ScriptedAgent[]];
  Object.assign(rogue.script, script);
  const { fleet } = await startFleet(t, pki, agents, { clock: systemClock });
  const cache = new FactsCache({ source: fleet, log: silentLog });
  t.teardown(() => cache.close());
  const warmed: ImageFacts[] = [];
  await fleet.readShared((facts) => {
    warmed.push(facts);
    cache.learn(facts);
  }, neverAborted);
  const owners = await ownersOf(images, agents);
  const owns = (image: string): boolean => owners[images.indexOf(image)] === rogue.url;
  return {
    rogue,
    cache,
    warmed,
    owned: images.filter(owns),
    foreign: images.filter((image) => !owns(image)).slice(0, 20),
    lookup: (image: string) => cache.get(requestFor(image), { signal: neverAborted }),
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
  const { cache, warmed, foreign, lookup } = await start(t, lying);
  t.equal(foreign.length, 20);
  t.ok(warmed.every(({ image }) => !foreign.includes(image)));
  t.equal(foreign.filter((image) => cache.peek(requestFor(image))).length, 0);
  const answers = await Promise.all(foreign.map(lookup));
  t.equal(answers.filter(isLie).length, 0);
  t.notOk(answers.find(({ error }) => error));
});

t.test('attack: facts that were confirmed in the future were confirmed now', async (t) => {
  const { cache, owned, lookup } = await start(t, lying);
  const [one = ''] = owned;
  const newTag = one.replace(':1', ':2');
  await lookup(newTag);
  for (const image of [one, newTag]) {
    const { confirmedAt = '' } = cache.peek(requestFor(image)) ?? {};
    t.ok(Date.parse(confirmedAt) <= Date.now(), confirmedAt);
  }
});

t.test('attack: an endless answer is cut, and another agent answers', async (t) => {
  let sent = 0;
  const flood: ScriptedAgent['script']['facts'] = (_, response) => {
    const chunk = Buffer.alloc(65_536, 'A');
    response.write('{"image":"');
    const more = (): void => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      if (!response.destroyed) response.once('drain', more);
    };
    more();
    return undefined;
  };
  const { rogue, lookup } = await start(t, { facts: flood });
  const answers = await Promise.all(images.map(lookup));
  for (const { platforms } of answers) t.equal(platforms.length, 2);
  t.ok(rogue.requests.length > 0);
  t.ok(sent / rogue.requests.length < 4 * 1_048_576, `${sent} bytes in ${rogue.requests.length} answers`);
});
