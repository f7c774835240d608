import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { FactRequests, type FactsCall, type RequestState } from '../../../src/fleet/agents/fact-requests.ts';
import { systemClock } from '../../../src/async/clock.ts';
import type { ImageFacts, ImageRequest } from '../../../src/images/facts/facts.ts';
import { maxDocuments, maxDocumentsLength } from '../../../src/images/facts/wire.ts';
import { connect, createPki, factsOf, requestFor, startScripted, type Script } from '../support.ts';
import { until } from '../../support/until.ts';
import { neverAborted } from '../../support/never-aborted.ts';

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
      { ...requestFor(image), namespace: 'shop', ...more },
      { signal: neverAborted, deadline: systemClock.monotonic() + 5000, onState: () => undefined, ...call },
    );
  return { agent, ask };
}

const named = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `r.example/a-${index}:1`);

/** Writes the facts of these images as lines, and keeps the response open. */
function send(response: ServerResponse, ...images: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
  for (const image of images) response.write(`${JSON.stringify(factsOf(image))}\n`);
}

t.test('one request carries all images of a pod', async (t) => {
  const { agent, ask } = await setup(t);
  const facts = await Promise.all(named(256).map((image) => ask(image)));
  t.strictSame(
    facts.map(({ image }) => image),
    named(256),
  );
  t.equal(agent.requests.length, 1);
  t.match(agent.requests[0], { namespace: 'shop', images: { length: 256 } });
});

t.test('each image has room for the largest documents in an answer', async (t) => {
  const documents = Array.from({ length: maxDocuments }, () =>
    'A'.repeat(Math.floor(maxDocumentsLength / maxDocuments)),
  );
  const { agent, ask } = await setup(t, {
    facts: ({ images }) => ({
      results: images.map(({ image }) => factsOf(image, image.includes('@') ? { documents } : {})),
    }),
  });
  const images = [...named(10).map((name) => `${name}@sha256:${'a'.repeat(64)}`), ...named(3)];
  const facts = await Promise.all(images.map((image) => ask(image)));
  t.strictSame(
    facts.map(({ image }) => image),
    images,
  );
  t.strictSame(new Set(agent.requests.map(({ images }) => images.length)), new Set([9, 4]));
});

t.test('images of another namespace or service account need another request', async (t) => {
  const { agent, ask } = await setup(t);
  const serviceAccount = { namespace: 'shop', name: 'cart' };
  await Promise.all([ask('a:1'), ask('b:1', { namespace: 'other' }), ask('c:1', { serviceAccount })]);
  t.strictSame(agent.requests.map(({ images }) => images.map(({ image }) => image).join()).sort(), [
    'a:1',
    'b:1',
    'c:1',
  ]);
});

t.test('facts are delivered as they arrive, without waiting for the other images', async (t) => {
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

t.test('a request is aborted when its last caller aborts', async (t) => {
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
  t.equal(agent.requests.length, 1);
});

t.test('a bad answer fails only the images that have no facts yet', async (t) => {
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
    facts: (body, response) => {
      const image = body.images[0]?.image ?? '';
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
  await until(() => agent.requests.length === 9);
  t.match(await ask('good:1'), { image: 'good:1' });
  t.equal(agent.requests.length, 10);
  stop.abort();
  for (const hog of hogs) await t.rejects(hog, { code: 'timeout' });
});
