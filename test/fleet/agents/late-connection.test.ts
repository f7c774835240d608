import t from 'tap';
import type { AgentConnection } from '../../../src/fleet/agents/connection.ts';
import { lateConnection } from '../../../src/fleet/agents/late-connection.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { captureLog, silentLog } from '../../support/captured.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const call = { signal: neverAborted, maxBytes: 1000 };

function real() {
  const state = { closed: 0 };
  const connection: AgentConnection = {
    json: (url, path) => Promise.resolve(url + path),
    lines: async function* (url, path) {
      await Promise.resolve();
      yield url + path;
    },
    close: () => {
      state.closed += 1;
      return Promise.resolve();
    },
  };
  return { connection, state };
}

async function linesOf(connection: AgentConnection): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of connection.lines('https://a', '/x', call)) lines.push(line);
  return lines;
}

t.test('agents are unreachable until the certificate exists', async (t) => {
  const { connection, state } = real();
  const { log, lines } = captureLog();
  const clock = createFakeClock();
  let tries = 0;
  const open = async (): Promise<AgentConnection> => {
    tries += 1;
    if (tries < 4) throw new Error(tries < 3 ? 'tls.crt is missing' : 'tls.key is missing');
    return connection;
  };
  const late = lateConnection(open, log, clock);
  await t.rejects(late.json('https://a', '/x', call), {
    code: 'unreachable',
    temporary: true,
    where: 'https://a',
  });
  await t.rejects(linesOf(late), { code: 'unreachable' });
  await clock.advance(3000);
  t.equal(await late.json('https://a', '/x', call), 'https://a/x');
  t.same(await linesOf(late), ['https://a/x']);
  t.match(lines, [/"level":"info".*tls.crt is missing/, /tls.key is missing/]);
  t.equal(lines.length, 2, 'each problem is logged once');
  await late.close();
  t.equal(state.closed, 1);
  t.equal(tries, 4);
});

t.test('close works while it waits for a certificate, and while it opens', async (t) => {
  const waiting = lateConnection(() => Promise.reject(new Error('no')), silentLog);
  await waiting.close();
  const { connection, state } = real();
  const opening = Promise.withResolvers<AgentConnection>();
  const late = lateConnection(() => opening.promise, silentLog);
  const closed = late.close();
  opening.resolve(connection);
  await closed;
  t.equal(state.closed, 1, 'a connection that opens after close is closed');
});
