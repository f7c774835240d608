import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { sharedFacts } from '../../src/fleet/shared-facts.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { connect, createPki, factsOf, readableLog, startScripted } from './support.ts';

const never = new AbortController().signal;

function lines(...facts: ImageFacts[]): (response: ServerResponse) => void {
  return (response) => void response.end(facts.map((one) => `${JSON.stringify(one)}\n`).join(''));
}

async function read(
  t: Test,
  known: ((response: ServerResponse) => void)[],
  options: { readonly maxBytes?: number; readonly signal?: AbortSignal } = {},
) {
  const pki = await createPki(t);
  const agents = await Promise.all(known.map((write) => startScripted(t, pki, { known: write })));
  const { log, lines: logged } = readableLog();
  const found: ImageFacts[] = [];
  const connection = await connect(t, pki);
  for await (const facts of sharedFacts({ agents, connection, log, signal: never, ...options })) {
    found.push(facts);
  }
  return { found, images: found.map((facts) => facts.image).sort(), logged };
}

t.test('what all agents know', async (t) => {
  const { images } = await read(t, [
    lines(factsOf('r.example/a:1'), factsOf('r.example/b:1')),
    lines(),
    lines(factsOf('r.example/c:1')),
  ]);
  t.strictSame(images, ['r.example/a:1', 'r.example/b:1', 'r.example/c:1']);
});

t.test('no agents', async (t) => {
  t.strictSame((await read(t, [])).found, []);
});

t.test('more agents than are read at a time, more facts than wait', async (t) => {
  const known = Array.from({ length: 20 }, (_, agent) =>
    lines(...Array.from({ length: 100 }, (_, index) => factsOf(`r.example/a${agent}:${index}`))),
  );
  t.equal(new Set((await read(t, known)).images).size, 2000);
});

t.test('an image comes again only where the facts are fresher', async (t) => {
  const old = factsOf('r.example/a:1', { freshUntil: '2029-01-01T00:00:00.000Z' });
  const fresh = factsOf('r.example/a:1', { freshUntil: '2031-01-01T00:00:00.000Z' });
  t.strictSame((await read(t, [lines(old, fresh, fresh, old)])).found, [old, fresh]);
});

t.test('wrong lines are left out, and counted in the log', async (t) => {
  const { images, logged } = await read(t, [
    (response) => void response.end(`{}\nno JSON\n${JSON.stringify(factsOf('r.example/a:1'))}\n`),
  ]);
  t.strictSame(images, ['r.example/a:1']);
  t.match(logged(), /"lines":2/);
});

t.test('an agent that fails is left out, and what it told before is kept', async (t) => {
  const { images, logged } = await read(t, [
    (response) =>
      void response.write(`${JSON.stringify(factsOf('r.example/a:1'))}\n`, () => {
        setImmediate(() => response.destroy());
      }),
    (response) => void response.writeHead(503).end(),
    lines(factsOf('r.example/b:1')),
  ]);
  t.ok(images.includes('r.example/b:1'));
  t.match(logged(), /did not send all its image facts/);
});

t.test('an agent without end is cut', async (t) => {
  let count = 0;
  const endless = (response: ServerResponse): void => {
    const line = (): string => `${JSON.stringify(factsOf(`r.example/a:${(count += 1)}`))}\n`;
    while (!response.destroyed && response.write(line()));
    if (!response.destroyed) response.once('drain', () => endless(response));
  };
  const { found, logged } = await read(t, [endless], { maxBytes: 50_000 });
  t.ok(found.length > 10 && found.length < 500, `${found.length}`);
  t.match(logged(), /more image facts than fit|did not send all its image facts/);
});

t.test('the limit is for all agents together', async (t) => {
  const many = (agent: string) =>
    lines(...Array.from({ length: 60 }, (_, index) => factsOf(`r.example/${agent}:${index}`)));
  const { found, logged } = await read(t, [many('a'), many('b'), many('c')], { maxBytes: 30_000 });
  const bytes = found.reduce((sum, facts) => sum + JSON.stringify(facts).length + 1, 0);
  t.ok(bytes > 10_000 && bytes <= 30_000, `${bytes}`);
  t.match(logged(), /more image facts than fit/);
});

t.test('ends without an error when its signal aborts', async (t) => {
  const stop = new AbortController();
  const { found, logged } = await read(
    t,
    [
      (response) =>
        void response.write(`${JSON.stringify(factsOf('r.example/a:1'))}\n`, () => {
          setImmediate(() => stop.abort());
        }),
    ],
    { signal: stop.signal },
  );
  t.ok(found.length <= 1);
  t.equal(logged(), '');
});

t.test('a reader that leaves ends the streams', async (t) => {
  const pki = await createPki(t);
  const gone = Promise.withResolvers<void>();
  const agent = await startScripted(t, pki, {
    known: (response) => {
      response.once('close', gone.resolve);
      response.write(`${JSON.stringify(factsOf('r.example/a:1'))}\n`);
    },
  });
  const connection = await connect(t, pki);
  const { log } = readableLog();
  for await (const facts of sharedFacts({ agents: [agent], connection, log, signal: never })) {
    t.equal(facts.image, 'r.example/a:1');
    break;
  }
  await gone.promise;
});
