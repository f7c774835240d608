/** `archwright agent` inside the test, asked over mutual TLS as the webhook does it. */
import { Readable } from 'node:stream';
import type { Test } from 'tap';
import { main } from '../../cmd/program/main.ts';
import { sendTo, type Answer } from '../daemon/support.ts';
import type { Pki } from '../fleet/support.ts';
import { until } from '../serving/support.ts';
import { childEnv } from './world.ts';

/** For agents on a computer with two cores and other work. */
export const patienceMs = 20_000;

/** A line of the log. */
export interface Line {
  readonly msg: string;
  readonly api?: string;
  readonly count?: number;
}

export interface Agent {
  /** Sends `POST /v1/facts`. */
  post(body: Readonly<Record<string, unknown>>): Promise<Answer['results']>;
  /** The answer to `GET /v1/facts`. */
  known(): Promise<string>;
  log(): string;
  lines(): readonly Line[];
  /** Ends it as SIGTERM does; gives back its exit code. */
  stop(): Promise<number | null>;
}

/** What starts an agent on free ports of loopback that ends at once when it is told to. */
export function agentArgs(pki: Pki, stateDir: string): string[] {
  const args = ['agent', '--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0', '--drain-time', '0s'];
  return [...args, '--tls-dir', pki.serverDir, '--state-dir', stateDir];
}

export async function startAgent(t: Test, pki: Pki, args: readonly string[]): Promise<Agent> {
  const stop = new AbortController();
  let log = '';
  const io = {
    env: childEnv,
    stdin: Readable.from([]),
    out: () => undefined,
    err: (text: string) => void (log += text),
  };
  const ended = main(args, { io, stop: stop.signal });
  t.teardown(async () => {
    stop.abort('SIGTERM');
    await ended;
  });
  return followAgent(
    pki,
    () => log,
    () => {
      stop.abort('SIGTERM');
      return ended;
    },
  );
}

/** An agent that was started elsewhere and writes this log. */
export async function followAgent(
  pki: Pki,
  log: () => string,
  stop: () => Promise<number | null>,
): Promise<Agent> {
  const lines = (): Line[] =>
    log()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  const listening = (): string | undefined => lines().find(({ api }) => api !== undefined)?.api;
  await until('the agent listens', () => listening() !== undefined, patienceMs);
  const url = listening() ?? '';
  return {
    post: async (body) => {
      const headers = { 'content-type': 'application/json' };
      const { json } = await sendTo(url, pki, 'POST', '/v1/facts', { headers, body: JSON.stringify(body) });
      return (json as Answer).results;
    },
    known: async () => (await sendTo(url, pki, 'GET', '/v1/facts')).text,
    log,
    lines,
    stop,
  };
}
