/** A running agent with a scripted source, and a client that sends any request. */
import type { RequestOptions } from 'node:https';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { startAgent, type AgentOptions } from '../../daemon/agent.ts';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { seriesOf, readableLog, silentLog } from '../support/captured.ts';
import { factsOf } from '../support/facts.ts';
import { createPki, type Pki } from '../fleet/support.ts';
import { send } from '../serving/support.ts';

export type TestAgent = Awaited<ReturnType<typeof startTestAgent>>;

export interface Sending extends Omit<RequestOptions, 'headers'> {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly tlsDir?: string;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: unknown;
}

export interface FactsResponse {
  readonly results: readonly ImageFacts[];
}

/** The certificate and key in a directory, if they exist. */
export async function clientTls(dir: string) {
  const [cert, key] = await Promise.all(
    ['tls.crt', 'tls.key'].map((name) => readFile(join(dir, name), 'utf8').catch(() => undefined)),
  );
  return { ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
}

export function holding() {
  let release: (() => void) | undefined;
  const held = { lookups: 0, isHeld: () => release !== undefined, release: () => release?.() };
  const source: ImageFactsSource = {
    lookup: ({ image }) =>
      new Promise((resolve) => {
        held.lookups += 1;
        release = () => resolve(factsOf(image));
      }),
  };
  return { held, source };
}

/** The body of a request for these images. */
export const bodyOf = (...images: string[]) => ({
  images: images.map((image) => ({ image })),
  deadlineMs: 5000,
});

const knowsAll: ImageFactsSource = { lookup: ({ image }) => Promise.resolve(factsOf(image)) };

export async function startTestAgent(
  t: Test,
  options: Partial<AgentOptions> & { readonly source?: ImageFactsSource; readonly pki?: Pki } = {},
) {
  const { source = knowsAll, ...others } = options;
  const pki = options.pki ?? (await createPki(t));
  const { log, lines } = readableLog();
  const metrics = createMetrics();
  const ownCache = new FactsCache({ source, log: silentLog });
  t.teardown(() => ownCache.close());
  const agent = await startAgent({
    listen: '127.0.0.1:0',
    metricsListen: '127.0.0.1:0',
    tlsDir: pki.serverDir,
    nodeName: 'node-1',
    version: '1.2.3',
    cache: ownCache,
    fingerprint: () => 'abc',
    node: () => ({ pullMode: 'local', amd64Level: 3 }),
    problems: () => [],
    dockerHubLimit: () => ({ limit: 100, remaining: 76 }),
    execErrors: () => ({ state: 'on', errors: [] }),
    log,
    metrics,
    ...others,
  });
  t.teardown(() => agent.stop(0));
  /** Sends a request with the webhook's certificate. */
  const sendToAgent = (method: string, path: string, more?: Sending) =>
    sendTo(agent.url, pki, method, path, more);
  return {
    agent,
    pki,
    lines,
    send: sendToAgent,
    post: async (body: unknown, more: Sending = {}) =>
      withResults(
        await sendToAgent('POST', '/v1/facts', {
          ...more,
          headers: { 'content-type': 'application/json', ...more.headers },
          body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
        }),
      ),
    metric: async (sample: string) => Number(await seriesOf(metrics, sample)),
  };
}

/** The lines of a response as one `FactsResponse`, in order. */
export function withResults(received: Received): Received {
  if (received.headers['content-type'] !== 'application/x-ndjson') return received;
  const results = received.text
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as unknown]));
  const { status, headers, text } = received;
  return { status, headers, text, json: { results } };
}

/** Sends one request on a new connection. */
export async function sendTo(
  url: string,
  pki: Pki,
  method: string,
  path: string,
  { tlsDir = pki.clientDir, ...more }: Sending = {},
): Promise<Received> {
  const tls = { servername: 'archwright-agent', ca: pki.ca.cert, ...(await clientTls(tlsDir)) };
  const { body: text, ...received } = await send(url + path, { method, agent: false, ...tls, ...more });
  return {
    ...received,
    text,
    get json() {
      return JSON.parse(text) as unknown;
    },
  };
}
