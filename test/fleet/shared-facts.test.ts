/** The warm-up: shared facts of all agents, each believed for the repositories that it owns. */
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { readableLog, silentLog } from '../support/captured.ts';
import { factsOf, requestFor } from '../support/facts.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { createPki, type FactsRequest, ownersOf, startFleet, startScripted } from './support.ts';

/** An image with this name in a repository that the agent owns. */
type Owned = (name: string) => string;
type Known = (response: ServerResponse, owned: Owned) => void;

function lines(factsOfAgent: (owned: Owned) => readonly ImageFacts[]): Known {
  return (response, owned) =>
    void response.end(
      factsOfAgent(owned)
        .map((one) => `${JSON.stringify(one)}\n`)
        .join(''),
    );
}

/** A fleet of one agent for each of these responses, and what it passes on. */
async function read(t: Test, known: readonly Known[], signal = neverAborted) {
  const pki = await createPki(t);
  const agents = await Promise.all(known.map(() => startScripted(t, pki)));
  const repositories = Array.from({ length: 20 * known.length }, (_, index) => `r.example/r${index}`);
  const owners = await ownersOf(repositories, agents);
  for (const [index, write] of known.entries()) {
    const agent = agents[index];
    const repository = repositories[owners.indexOf(agent?.url ?? '')];
    if (agent) agent.script.known = (response) => write(response, (name) => `${repository}:${name}`);
  }
  const { log, lines: logged } = readableLog();
  const { fleet } = await startFleet(t, pki, agents, { log });
  const found: ImageFacts[] = [];
  await fleet.readShared((facts) => found.push(facts), signal);
  const names = found.map(({ image }) => image.slice(image.lastIndexOf(':') + 1)).sort();
  return { agents, logged, found, names };
}

t.test('malformed lines, and facts of the credentials of a pod, are skipped and logged', async (t) => {
  const { names, logged } = await read(t, [
    (response, owned) =>
      void response.end(
        [
          '{}',
          'no JSON',
          JSON.stringify({ ...factsOf('r'), image: 'R:::' }),
          JSON.stringify(factsOf(owned('b'), { credentialSource: 'pull-secret' })),
          JSON.stringify(factsOf(owned('a'))),
          '',
        ].join('\n'),
      ),
  ]);
  t.strictSame(names, ['a']);
  t.match(logged(), /"lines":4/);
});

t.test('a failing agent does not affect the others', async (t) => {
  const { names, logged } = await read(t, [
    (response, owned) =>
      void response.write(`${JSON.stringify(factsOf(owned('a')))}\n`, () => {
        setImmediate(() => response.destroy());
      }),
    (response) => void response.writeHead(503).end(),
    lines((owned) => [factsOf(owned('b'))]),
  ]);
  t.ok(names.includes('b'));
  t.match(logged(), /"reason":"[^"]+","msg":"an agent did not send all its image facts"/);
  t.notMatch(logged(), /"stack"/, 'a known failure');
});

t.test('endless streams are cut, and leave no memory for those of others', async (t) => {
  let sent = 0;
  const chunk = Buffer.from(`${'x'.repeat(60_000)}\n`);
  const endless: Known = (response) => {
    for (let isReady = true; isReady && !response.destroyed; sent += chunk.length)
      isReady = response.write(chunk);
    if (!response.destroyed) response.once('drain', () => endless(response, String));
  };
  const { found, logged } = await read(t, [endless, endless]);
  t.strictSame(found, []);
  t.ok(sent > 100 * 2 ** 20 && sent < 160 * 2 ** 20, `${sent}`);
  t.match(logged(), /more image facts than fit/);
});

t.test('an abort ends the stream without an error', async (t) => {
  const stop = new AbortController();
  const { found, logged } = await read(
    t,
    [
      (response, owned) =>
        void response.write(`${JSON.stringify(factsOf(owned('a')))}\n`, () => {
          setImmediate(() => stop.abort());
        }),
    ],
    stop.signal,
  );
  t.ok(found.length <= 1);
  t.equal(logged(), '');
});

t.test('attack: an agent lies about all images, to the warm-up and in lookups', async (t) => {
  const images = Array.from({ length: 60 }, (_, index) => `registry.example/team/app-${index}:1`);
  const lie = {
    platforms: [{ os: 'linux', architecture: 's390x' }],
    confirmedAt: '2999-01-01T00:00:00.000Z',
  };
  const pki = await createPki(t);
  const agents = await Promise.all([1, 2, 3, 4].map(() => startScripted(t, pki)));
  const [rogue] = agents;
  Object.assign(rogue?.script ?? {}, {
    known: (response: ServerResponse) =>
      void response.end(images.map((image) => `${JSON.stringify(factsOf(image, lie))}\n`).join('')),
    facts: ({ images: wanted }: FactsRequest) => ({
      results: wanted.map(({ image }) => factsOf(image, lie)),
    }),
  });
  const { fleet } = await startFleet(t, pki, agents, { clock: systemClock });
  const cache = new FactsCache({ source: fleet, log: silentLog });
  t.teardown(() => cache.close());
  await fleet.readShared((facts) => cache.learn(facts), neverAborted);
  const owners = await ownersOf(images, agents);
  const owned = images.filter((_, index) => owners[index] === rogue?.url);
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
