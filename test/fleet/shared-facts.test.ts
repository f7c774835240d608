/** The warm-up: shared facts of all agents, each believed for the repositories that it owns. */
import t, { type Test } from 'tap';
import { AgentError } from '../../src/fleet/connection.ts';
import { Ranking } from '../../src/fleet/discovery.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { parseReference } from '../../src/images/references/reference.ts';
import { readableLog, silentLog } from '../support/captured.ts';
import { factsOf, requestFor } from '../support/facts.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { agentsOf, cut, type Script, startFleet } from './support.ts';

/** The lines of an agent. @param owned an image with this name in a repository that the agent owns */
type Known = (owned: (name: string) => string) => Iterable<string>;

/** A fleet of one agent for each of these responses, and what it passes on. */
async function read(t: Test, known: readonly Known[], signal = neverAborted) {
  const agents = agentsOf(known.map(() => ({})));
  const ranking = new Ranking(agents);
  const repositories = Array.from({ length: 20 * known.length }, (_, index) => `r.example/r${index}`);
  for (const [index, { url, script }] of agents.entries()) {
    const repository = repositories.find((each) => ranking.owner(each)?.url === url);
    script.known = () => known[index]?.((name) => `${repository}:${name}`) ?? [];
  }
  const { log, lines: logged } = readableLog();
  const { fleet } = startFleet(t, agents, { log });
  const found: ImageFacts[] = [];
  await fleet.readShared((facts) => found.push(facts), signal);
  const names = found.map(({ image }) => image.slice(image.lastIndexOf(':') + 1)).sort();
  return { logged, found, names };
}

t.test('malformed lines, and facts of the credentials of a pod, are skipped and logged', async (t) => {
  const { names, logged } = await read(t, [
    (owned) => [
      '{}',
      'no JSON',
      JSON.stringify({ ...factsOf('r'), image: 'R:::' }),
      JSON.stringify(factsOf(owned('b'), { credentialSource: 'pull-secret' })),
      JSON.stringify(factsOf(owned('a'))),
    ],
  ]);
  t.strictSame(names, ['a']);
  t.match(logged(), /"lines":4/);
});

t.test('a failing agent does not affect the others', async (t) => {
  const { names, logged } = await read(t, [
    function* (owned) {
      yield JSON.stringify(factsOf(owned('a')));
      cut();
    },
    cut,
    (owned) => [JSON.stringify(factsOf(owned('b')))],
  ]);
  t.strictSame(names, ['a', 'b']);
  t.match(logged(), /"reason":"[^"]+","msg":"an agent did not send all its image facts"/);
  t.notMatch(logged(), /"stack"/, 'a known failure');
});

t.test('endless streams are cut, and leave no memory for those of others', async (t) => {
  let sent = 0;
  const line = 'x'.repeat(60_000);
  const endless = function* () {
    for (; ; sent += line.length) yield line;
  };
  const { found, logged } = await read(t, [endless, endless]);
  t.strictSame(found, []);
  t.ok(sent > 100 * 2 ** 20 && sent < 160 * 2 ** 20, `${sent}`);
  t.match(logged(), /more image facts than fit/);
});

t.test('an abort ends the stream without an error', async (t) => {
  const stop = new AbortController();
  const aborting: Known = function* (owned) {
    yield JSON.stringify(factsOf(owned('a')));
    stop.abort();
    throw new AgentError('timeout', 'no answer in time');
  };
  const { names, logged } = await read(t, [aborting], stop.signal);
  t.strictSame(names, ['a']);
  t.equal(logged(), '');
});

t.test('attack: an agent lies about all images, to the warm-up and in lookups', async (t) => {
  const images = Array.from({ length: 60 }, (_, index) => `registry.example/team/app-${index}:1`);
  const lie = {
    platforms: [{ os: 'linux', architecture: 's390x' }],
    confirmedAt: '2999-01-01T00:00:00.000Z',
  };
  const rogue: Script = {
    known: () => images.map((image) => JSON.stringify(factsOf(image, lie))),
    facts: ({ images: [{ image }] }) => factsOf(image, lie),
  };
  const agents = agentsOf([rogue, {}, {}, {}]);
  const { fleet } = startFleet(t, agents);
  const cache = new FactsCache({ source: fleet, log: silentLog });
  t.teardown(() => cache.close());
  await fleet.readShared((facts) => cache.learn(facts), neverAborted);
  const ranking = new Ranking(agents);
  const owned = images.filter((image) => ranking.owner(parseReference(image).repository) === agents[0]);
  const lookup = (image: string) => cache.get(requestFor(image), { signal: neverAborted });
  t.strictSame(
    images.filter((image) => cache.peek(requestFor(image))),
    owned,
    'only repositories that it owns count',
  );
  const answers = await Promise.all(images.filter((image) => !owned.includes(image)).map(lookup));
  for (const { error, platforms } of answers) t.strictSame([error, platforms.length], [undefined, 2]);
  const newTag = owned[0]?.replace(':1', ':2') ?? '';
  await lookup(newTag);
  for (const image of [owned[0] ?? '', newTag]) {
    const { confirmedAt = '' } = cache.peek(requestFor(image)) ?? {};
    t.ok(Date.parse(confirmedAt) <= Date.now(), `not confirmed in the future: ${confirmedAt}`);
  }
});
