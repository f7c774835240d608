import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { Batches } from '../../src/fleet/batches.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { ImageFacts, ImageRequest } from '../../src/images/facts/facts.ts';
import { factsOf, requestFor } from '../support/facts.ts';
import { connect, createPki, startScripted, type Script } from './support.ts';
import { until } from '../support/until.ts';

async function setup(t: Test, script: Script = {}) {
  const pki = await createPki(t);
  const agent = await startScripted(t, pki, script);
  const batches = new Batches(await connect(t, pki), systemClock);
  const ask = (image: string, more: Partial<ImageRequest> = {}): Promise<ImageFacts> => {
    const request = { ...requestFor(image), namespace: 'shop', ...more };
    return batches.lookup(agent.url, request, systemClock.monotonic() + 5000);
  };
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
  const slow = ask('a:1');
  t.match(await ask('b:1'), { image: 'b:1' });
  open[0]?.end(`${JSON.stringify(factsOf('a:1'))}\n`);
  t.match(await slow, { image: 'a:1' });
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
  const open: (() => void)[] = [];
  const { agent, ask } = await setup(t, {
    facts: (body, response) => {
      const image = body.images[0]?.image ?? '';
      if (image.startsWith('good')) return { results: [factsOf(image)] };
      send(response);
      open.push(() => response.end(`${JSON.stringify(factsOf(image))}\n`));
      return undefined;
    },
  });
  const hogs = named(40).map((image, index) =>
    ask(image, { serviceAccount: { namespace: 'hog', name: `a-${index}` }, namespace: 'hog' }),
  );
  await until(() => agent.requests.length === 9);
  t.equal((await ask('good:1')).image, 'good:1');
  t.equal(agent.requests.length, 10);
  for (let ended = 0; ended < hogs.length;) {
    await until(() => open.length > ended);
    open[ended]?.();
    ended += 1;
  }
  t.equal((await Promise.all(hogs)).length, 40);
});
