import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { Ranking } from '../../src/fleet/rank.ts';
import { streamSharedFacts } from '../../src/fleet/shared-facts.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { factsOf } from '../support/facts.ts';
import { connect, createPki, startScripted } from './support.ts';
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
  const ranking = new Ranking(agents);
  for (const [index, write] of known.entries()) {
    const agent = agents[index];
    const owned: Owned = (name) => {
      for (let count = 0; ; count += 1)
        if (ranking.owner(`r.example/r${count}/${name}`) === agent) return `r.example/r${count}/${name}:1`;
    };
    if (agent) agent.script.known = (response) => write(response, owned);
  }
  const { log, lines: logged } = readableLog();
  const connection = await connect(t, pki);
  const rejected: string[] = [];
  const meters = { rejected: (reason: string) => rejected.push(reason) };
  const context = { agents, connection, log, meters };
  return { agents, context, logged, rejected };
}

async function read(
  t: Test,
  known: readonly Known[],
  options: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
) {
  const { context, ...started } = await start(t, known);
  const found: ImageFacts[] = [];
  await streamSharedFacts({ ...context, signal: neverAborted, ...options }, (facts) => found.push(facts));
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

t.test('malformed lines, and facts of the credentials of a pod, are skipped and counted', async (t) => {
  const { names, logged, rejected } = await read(t, [
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
  t.strictSame(rejected, ['invalid', 'invalid', 'invalid', 'invalid']);
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
