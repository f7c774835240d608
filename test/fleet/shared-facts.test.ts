import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { createOwnerOf } from '../../src/fleet/groups/rendezvous.ts';
import { bindFleetMetrics } from '../../src/fleet/metrics.ts';
import { sharedFacts } from '../../src/fleet/shared-facts.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { defaultFreshness } from '../../src/images/memory/freshness.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { connect, createPki, factsOf, startScripted } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { readableLog } from '../support/captured.ts';

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

/** Starts one agent for each of these responses. */
async function start(t: Test, known: readonly Known[]) {
  const pki = await createPki(t);
  const agents = await Promise.all(known.map(() => startScripted(t, pki)));
  const ownerOf = createOwnerOf(agents);
  for (const [index, write] of known.entries()) {
    const agent = agents[index];
    const owned: Owned = (name) => {
      for (let count = 0; ; count += 1)
        if (ownerOf(`r.example/r${count}/${name}`) === agent) return `r.example/r${count}/${name}:1`;
    };
    if (agent) agent.script.known = (response) => write(response, owned);
  }
  const { log, lines: logged } = readableLog();
  const connection = await connect(t, pki);
  const rejected: string[] = [];
  const meters = bindFleetMetrics(createMetrics(), () => ({
    ready: 0,
    backedOff: 0,
    silent: 0,
    available: 1,
    groups: 0,
    repositories: 0,
  }));
  const context = {
    agents,
    connection,
    log,
    clock: systemClock,
    freshness: defaultFreshness,
    meters: { ...meters, rejected: (reason: string) => rejected.push(reason) },
  };
  return { agents, context, logged, rejected };
}

async function read(
  t: Test,
  known: readonly Known[],
  options: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
) {
  const { context, ...started } = await start(t, known);
  const found: ImageFacts[] = [];
  for await (const facts of sharedFacts({ ...context, signal: neverAborted, ...options })) found.push(facts);
  return { ...started, found, names: found.map(({ image }) => nameOf(image)).sort() };
}

const nameOf = (image: string): string => /([^/]+):1$/u.exec(image)?.[1] ?? '';

t.test('facts of all agents are read', async (t) => {
  const { names, rejected } = await read(t, [
    lines((owned) => [factsOf(owned('a')), factsOf(owned('b'))]),
    lines(() => []),
    lines((owned) => [factsOf(owned('c'))]),
  ]);
  t.strictSame(names, ['a', 'b', 'c']);
  t.strictSame(rejected, []);
});

t.test('without agents there are no facts', async (t) => {
  t.strictSame((await read(t, [])).found, []);
});

t.test('20 agents with 100 facts each are read completely', async (t) => {
  const known = Array.from({ length: 20 }, (_, agent) =>
    lines((owned) => Array.from({ length: 100 }, (_, index) => factsOf(owned(`a${agent}-${index}`)))),
  );
  t.equal(new Set((await read(t, known)).names).size, 2000);
});

t.test('an image is repeated only with fresher facts', async (t) => {
  const { found } = await read(t, [
    lines((owned) => {
      const [old, fresh] = ['2024', '2025'].map((year) =>
        factsOf(owned('a'), { freshUntil: `${year}-01-01T00:00:00.000Z` }),
      ) as [ImageFacts, ImageFacts];
      return [old, fresh, fresh, old];
    }),
  ]);
  t.strictSame(
    found.map(({ freshUntil }) => freshUntil.slice(0, 4)),
    ['2024', '2025'],
  );
});

t.test('malformed lines are skipped and counted', async (t) => {
  const { names, logged, rejected } = await read(t, [
    (response, owned) =>
      void response.end(
        `{}\nno JSON\n${JSON.stringify(factsOf('R:::'))}\n${JSON.stringify(factsOf(owned('a')))}\n`,
      ),
  ]);
  t.strictSame(names, ['a']);
  t.match(logged(), /"lines":3/);
  t.strictSame(rejected, ['invalid', 'invalid', 'invalid']);
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

t.test('an endless stream is cut', async (t) => {
  let count = 0;
  const endless: Known = (response, owned) => {
    const line = (): string => `${JSON.stringify(factsOf(owned(`a${(count += 1)}`)))}\n`;
    while (!response.destroyed && response.write(line()));
    if (!response.destroyed) response.once('drain', () => endless(response, owned));
  };
  const { found, logged } = await read(t, [endless], { maxBytes: 50_000 });
  t.ok(found.length > 10 && found.length < 500, `${found.length}`);
  t.match(logged(), /more image facts than fit|did not send all its image facts/);
});

t.test('the byte limit covers all agents together', async (t) => {
  const many = (agent: string) =>
    lines((owned) => Array.from({ length: 60 }, (_, index) => factsOf(owned(`${agent}-${index}`))));
  const { found, logged } = await read(t, [many('a'), many('b'), many('c')], { maxBytes: 30_000 });
  const bytes = found.reduce((sum, facts) => sum + JSON.stringify(facts).length + 1, 0);
  t.ok(bytes > 10_000 && bytes <= 30_000, `${bytes}`);
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
    { signal: stop.signal },
  );
  t.ok(found.length <= 1);
  t.equal(logged(), '');
});

t.test('when the reader stops, the connections close', async (t) => {
  const gone = Promise.withResolvers<void>();
  const { context } = await start(t, [
    (response, owned) => {
      response.once('close', gone.resolve);
      response.write(`${JSON.stringify(factsOf(owned('a')))}\n`);
    },
  ]);
  for await (const facts of sharedFacts({ ...context, signal: neverAborted })) {
    t.equal(nameOf(facts.image), 'a');
    break;
  }
  await gone.promise;
});
