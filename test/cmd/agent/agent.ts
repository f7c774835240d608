/** `archwright agent` inside the test, with requests over mutual TLS like the webhook's. */
import type { Test } from 'tap';
import '../../../cmd/agent.ts';
import { sendTo, withResults, type FactsResponse } from '../../daemon/support.ts';
import type { Pki } from '../../fleet/support.ts';
import { until } from '../../support/until.ts';
import { start } from '../run.ts';
import { childEnv } from '../world.ts';

/**
 * Only for an agent that hangs. Loading its modules takes a second, but 20 s with coverage and 12 other
 * processes on two cores.
 */
const startTimeoutMs = 150_000;

export type Agent = Awaited<ReturnType<typeof startAgent>>;

export function agentArgs(pki: Pki, stateDir: string): string[] {
  const args = ['agent', '--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0', '--drain-time', '0s'];
  return [...args, '--tls-dir', pki.serverDir, '--state-dir', stateDir];
}

export async function startAgent(t: Test, pki: Pki, args: readonly string[]) {
  const stop = new AbortController();
  const { err: log, ended: ending } = start(args, { env: childEnv, stop: stop.signal });
  const ended = ending.then(({ code }) => code);
  const end = (): void => stop.abort('SIGTERM');
  t.teardown(() => (end(), ended));
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  const lines = () => {
    const texts = log().split('\n').slice(0, -1);
    return texts.map((line) => JSON.parse(line) as { api?: string; health?: string; count?: number });
  };
  const listening = (): string | undefined => lines().find(({ api }) => api !== undefined)?.api;
  const isDecided = (): boolean => hasEnded || listening() !== undefined;
  await until(isDecided, 'the agent listens', startTimeoutMs);
  const url = listening();
  if (url === undefined) throw new Error(`the agent ended: ${log()}`);
  return {
    post: async (body: Readonly<Record<string, unknown>>): Promise<FactsResponse['results']> => {
      const headers = { 'content-type': 'application/json' };
      const sent = await sendTo(url, pki, 'POST', '/v1/facts', { headers, body: JSON.stringify(body) });
      const order = (body['images'] as readonly { readonly image: string }[]).map(({ image }) => image);
      const { results } = withResults(sent).json as FactsResponse;
      return results.toSorted((a, b) => order.indexOf(a.image) - order.indexOf(b.image));
    },
    known: async (): Promise<string> => (await sendTo(url, pki, 'GET', '/v1/facts')).text,
    log,
    lines,
    /** Ends it like SIGTERM. @returns its exit code */
    stop: () => (end(), ended),
  };
}
