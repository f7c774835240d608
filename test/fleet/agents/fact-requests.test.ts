import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { FactRequests, type FactsCall, type RequestState } from '../../../src/fleet/agents/fact-requests.ts';
import { systemClock } from '../../../src/async/clock.ts';
import type { ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { connect, createPki, factsOf, questionOf, startScripted, type Script } from '../support.ts';
import { until } from '../../support/until.ts';

const never = new AbortController().signal;

async function setup(t: Test, script: Script = {}) {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, script);
  const requests = new FactRequests({ connection: await connect(t, pki), clock: systemClock });
  const ask = (
    image: string,
    more: Partial<ImageRequest> = {},
    call: Partial<FactsCall> = {},
  ): Promise<ImageFacts> =>
    requests.ask(
      agent.url,
      { ...questionOf(image), namespace: 'shop', ...more },
      { signal: never, deadline: systemClock.monotonic() + 5000, onState: () => undefined, ...call },
    );
  return { agent, ask };
}

const named = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `r.example/a-${index}:1`);

/** Writes facts as lines, as far as they are known, and keeps the answer open. */
function send(response: ServerResponse, ...images: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  for (const image of images) response.write(`${JSON.stringify(factsOf(image))}\n`);
}

t.test('the images of a pod are one request', async (t) => {
  const { agent, ask } = await setup(t);
  const facts = await Promise.all(named(256).map((image) => ask(image)));
  t.strictSame(
    facts.map(({ image }) => image),
    named(256),
  );
  t.equal(agent.asked.length, 1);
  t.match(agent.asked[0], { namespace: 'shop', images: { length: 256 } });
});

t.test('requests differ by namespace and service account', async (t) => {
  const { agent, ask } = await setup(t);
  const serviceAccount = { namespace: 'shop', name: 'cart' };
  await Promise.all([ask('a:1'), ask('b:1', { namespace: 'other' }), ask('c:1', { serviceAccount })]);
  t.strictSame(agent.asked.map(({ images }) => images.map(({ image }) => image).join()).sort(), [
    'a:1',
    'b:1',
    'c:1',
  ]);
});

t.test('facts count as soon as they come, whatever the other images do', async (t) => {
  const open: ServerResponse[] = [];
  const { ask } = await setup(t, {
    facts: (_, response) => {
      open.push(response);
      send(response, 'b:1');
    },
  });
  const states: RequestState[] = [];
  const slow = ask('a:1', {}, { onState: (state) => states.push(state) });
  t.match(await ask('b:1'), { image: 'b:1' });
  t.strictSame(states, ['sent', 'responding']);
  open[0]?.end(`${JSON.stringify(factsOf('a:1'))}\n`);
  t.match(await slow, { image: 'a:1' });
});

t.test('a request ends when nobody waits for it any more', async (t) => {
  let closed = 0;
  const { agent, ask } = await setup(t, {
    facts: (_, response) => {
      response.once('close', () => (closed += 1));
      send(response, 'b:1');
    },
  });
  const [one, two] = [new AbortController(), new AbortController()];
  const first = ask('a:1', {}, { signal: one.signal });
  const second = ask('c:1', {}, { signal: two.signal });
  t.match(await ask('b:1'), { image: 'b:1' });
  one.abort();
  await t.rejects(first, { code: 'timeout' });
  t.equal(closed, 0);
  two.abort();
  await t.rejects(second, { code: 'timeout' });
  await until(() => closed === 1);
  t.equal(agent.asked.length, 1);
});

t.test('a bad answer fails the images without facts only', async (t) => {
  for (const [name, end] of [
    ['an image is missing', ''],
    ['another image', `${JSON.stringify(factsOf('x:1'))}\n`],
    ['no JSON', '{\n'],
  ] as const) {
    await t.test(name, async (t) => {
      const { ask } = await setup(t, {
        facts: (_, response) => {
          send(response, 'a:1');
          response.end(end);
        },
      });
      const bad = ask('b:1');
      t.match(await ask('a:1'), { image: 'a:1' });
      await t.rejects(bad, { code: 'bad-answer' });
    });
  }
});

t.test('one namespace cannot use up the requests to an agent', async (t) => {
  const { agent, ask } = await setup(t, {
    facts: (asked, response) => {
      const image = asked.images[0]?.image ?? '';
      if (image.startsWith('good')) return { results: [factsOf(image)] };
      send(response);
      return undefined;
    },
  });
  const stop = new AbortController();
  const hogs = named(40).map((image, index) =>
    ask(
      image,
      { serviceAccount: { namespace: 'hog', name: `a-${index}` }, namespace: 'hog' },
      { signal: stop.signal },
    ),
  );
  await until(() => agent.asked.length === 9);
  t.match(await ask('good:1'), { image: 'good:1' });
  t.equal(agent.asked.length, 10);
  stop.abort();
  for (const hog of hogs) await t.rejects(hog, { code: 'timeout' });
});
