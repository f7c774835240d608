/** The socket for `inspect`: bad requests, and an agent that has too much to do or fails. */
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { askAgent } from '../../../daemon/local/client.ts';
import { inspectPath, socketPathIn, type Inspected } from '../../../daemon/local/protocol.ts';
import { startLocalInspection, type LocalInspectionOptions } from '../../../daemon/local/server.ts';
import { directory } from '../../cmd/world.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { readableLog } from '../../support/captured.ts';

const body = { images: [{ image: 'a:1', pullPolicy: 'Always' }], deadlineMs: 1000 };
const nothing: Inspected = { results: [], attempts: {}, sources: [] };

async function serve(t: Test, inspect: LocalInspectionOptions['inspect']) {
  const path = socketPathIn(directory(t));
  const { log, lines } = readableLog();
  const server = await startLocalInspection({ path, inspect, log });
  t.teardown(() => server?.close());
  return { path, lines };
}

async function send(socketPath: string, method: string, path: string, content: string) {
  const sent = request({ socketPath, method, path });
  sent.end(content);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, text: await text(response) };
}

t.test('the local socket serves only inspections', async (t) => {
  const { path } = await serve(t, () => Promise.resolve(nothing));
  t.strictSame(await askAgent(path, body, neverAborted), nothing);
  t.match(await send(path, 'GET', inspectPath, ''), { status: 404 });
  t.match(await send(path, 'POST', '/v1/facts', JSON.stringify(body)), { status: 404 });
  t.match(await send(path, 'POST', inspectPath, '{'), { status: 400, text: /the body is not JSON/ });
  t.match(await send(path, 'POST', inspectPath, '{"images": 1}'), { status: 400 });
  t.equal(
    await askAgent(path, { images: 1 }, neverAborted),
    undefined,
    'requests that the agent refuses are inspected in this process',
  );
});

t.test('concurrent inspections are limited', async (t) => {
  const held = Promise.withResolvers<Inspected>();
  let running = 0;
  const { path } = await serve(t, () => {
    running += 1;
    return held.promise;
  });
  const answers = Array.from({ length: 9 }, () =>
    askAgent(path, body, neverAborted).catch((error: unknown) => error),
  );
  const refused = await Promise.race(answers);
  t.match(refused, { name: 'LocalInspectionError', message: /503: too many concurrent inspections/ });
  held.resolve(nothing);
  t.equal((await Promise.all(answers)).filter((answer) => answer instanceof Error).length, 1);
  t.equal(running, 8);
});

t.test('the details of a failure are only logged', async (t) => {
  const { path, lines } = await serve(t, () => Promise.reject(new Error('secret detail')));
  await t.rejects(askAgent(path, body, neverAborted), {
    message: /500: the agent failed to answer; its log says why/,
  });
  t.match(lines(), /an inspection failed unexpectedly/);
});

t.test('a lost connection or a malformed response is an error of the client', async (t) => {
  const dir = directory(t);
  t.equal(await askAgent(join(dir, 'none.sock'), body, neverAborted), undefined);
  const answers: (readonly [string, (response: ServerResponse) => void])[] = [
    ['cut', (response) => void response.destroy()],
    ['text', (response) => void response.end('hello')],
  ];
  for (const [name, answer] of answers) {
    const path = join(dir, `${name}.sock`);
    const server = createServer((_, response) => answer(response)).listen(path);
    await once(server, 'listening');
    await t.rejects(
      askAgent(path, body, neverAborted),
      { message: 'the agent ended while it inspected' },
      name,
    );
    server.close();
  }
});
