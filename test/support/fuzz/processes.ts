/**
 * Bodies and heads of requests over TLS, to a webhook and an agent that run as processes. Registries are
 * behind a proxy address without a server, so no request leaves the machine.
 */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { parse } from 'yaml';
import { createCa, issueTls, type PemPair } from '../certificates.ts';
import { imageEnvironment } from '../image-environment.ts';
import { startProgram } from '../program.ts';
import { parseBytes } from '../../../src/names/quantity.ts';
import { factsRequests, reviews } from './cluster.ts';
import { words } from './inputs.ts';
import { FuzzFinding, must, type FuzzTarget } from './target.ts';

/** Documented statuses of 500 or more: too many concurrent requests. */
const documented: ReadonlySet<number> = new Set([503]);

/** Time limit for a head without an end, far below the server's. */
const headWaitMs = 200;

interface Running {
  readonly url: URL;
  readonly pool: Agent;
  readonly tls: { readonly ca: string } & PemPair;
  readonly peakMb: () => number;
  readonly stop: () => Promise<void>;
}

type Program = 'webhook' | 'agent';

/**
 * As in a container: V8's heap is half of a small container's memory. The chart sets small semi-spaces for
 * agents.
 */
function nodeOptions(program: Program): string {
  const heap = `--max-old-space-size=${limitMb(program) / 2}`;
  return program === 'agent' ? `${heap} --max-semi-space-size=1` : heap;
}

/** Closed ports refuse at once. */
const nowhere = 'http://127.0.0.1:9';

async function start(program: Program): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), 'archwright-fuzz-'));
  const ca = await createCa();
  const issue = { cn: 'archwright-agent', dns: ['archwright-agent'], ip: ['127.0.0.1'], server: true };
  const tlsDir = await issueTls(ca, join(dir, 'server'), issue);
  const host = join(dir, 'host');
  mkdirSync(host);
  const own = {
    webhook: [
      '--inline-budget',
      '1ms',
      '--image-overrides',
      '[{ match = "*/*/web", architectures = ["arm64"] }]',
    ],
    agent: ['--host-root', host, '--node-name', 'node-1'],
  };
  const env = {
    ...imageEnvironment(),
    HTTPS_PROXY: nowhere,
    HTTP_PROXY: nowhere,
    NODE_OPTIONS: nodeOptions(program),
  };
  const flags = ['--tls-dir', tlsDir, ...own[program]];
  const started = await startProgram(program, flags, { home: dir, env });
  const client = await ca.issue({ cn: 'archwright-webhook', client: true });
  const tls = { ca: ca.cert, ...client };
  const pool = new Agent({ ...tls, keepAlive: true, servername: 'archwright-agent' });
  return {
    url: new URL(started.url),
    pool,
    tls,
    peakMb: () => Math.ceil(started.peakBytes() / 1024 / 1024),
    stop: async () => {
      pool.destroy();
      await started.stop();
      rmSync(dir, { recursive: true });
    },
  };
}

const running = new Map<Program, Promise<Running>>();

function runningOf(program: Program): Promise<Running> {
  const found = running.get(program) ?? start(program);
  running.set(program, found);
  return found;
}

async function post(program: Program, path: string, body: Buffer): Promise<{ status: number; text: string }> {
  const { url, pool: agent } = await runningOf(program);
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const sent = request(new URL(path, url), { method: 'POST', agent, headers });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: (await buffer(response)).toString('utf8') };
}

function checkStatus(status: number, text: string): void {
  if (status >= 500 && !documented.has(status))
    throw new FuzzFinding(`status ${status}: ${text.slice(0, 300)}`);
}

/** `resources.limits.memory` of the chart. */
function limitMb(program: Program): number {
  const path = new URL('../../../charts/archwright/values.yaml', import.meta.url);
  const values = parse(readFileSync(path, 'utf8')) as Record<
    string,
    { readonly resources: { readonly limits: { readonly memory: string } } }
  >;
  return (parseBytes(values[program]?.resources.limits.memory ?? '') ?? 0) / 1024 / 1024;
}

/** Checks that a valid request succeeds, within the chart's memory limit. */
async function check(program: Program): Promise<number> {
  if (program === 'webhook') {
    const review = Buffer.from(reviews.examples[0] ?? '');
    const { status, text } = await post('webhook', '/mutate?timeout=10s', review);
    must(
      status === 200 && text.includes('"uid":"705ab4f5","allowed":true'),
      `unexpected response: ${status} ${text}`,
    );
  } else {
    const { status, text } = await post('agent', '/v1/facts', Buffer.from(factsRequests.examples[0] ?? ''));
    must(status === 200 && text.includes('"image":"nginx"'), `unexpected response: ${status} ${text}`);
  }
  const { peakMb } = await runningOf(program);
  const limit = limitMb(program);
  must(limit > 0 && peakMb() < limit, `${peakMb()} MiB of RSS; the chart's limit is ${limit} MiB`);
  return peakMb();
}

async function close(program: Program): Promise<void> {
  const found = running.get(program);
  running.delete(program);
  await (await found)?.stop();
}

function bodies(program: Program, path: string, like: FuzzTarget): FuzzTarget {
  return {
    ...like,
    name: `${like.name}, to a running ${program}`,
    share: 2,
    feed: async (input) => {
      const { status, text } = await post(program, path, input);
      checkStatus(status, text);
      must(text.length < 1_000_000, 'an oversized response');
    },
    check: () => check(program),
    close: () => close(program),
  };
}

const line = 'host: a\r\ncontent-type: application/json\r\n';

function heads(program: Program, path: string): FuzzTarget {
  return {
    name: `heads of requests, to a running ${program}`,
    // Each one has its own TLS handshake.
    share: 0.5,
    examples: [
      `POST ${path} HTTP/1.1\r\n${line}content-length: 2\r\n\r\n{}`,
      `POST ${path} HTTP/1.1\r\n${line}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      `GET /readyz HTTP/1.1\r\n${line}connection: close\r\n\r\nGET /v1/info HTTP/1.1\r\nhost: a\r\n\r\n`,
      `POST ${path} HTTP/1.1\r\n${line}expect: 100-continue\r\ncontent-length: 99999999999\r\n\r\n`,
      `GET ${path} HTTP/1.1\r\n${line}upgrade: websocket\r\nconnection: upgrade\r\n\r\n`,
    ],
    words: words(
      'HTTP/1.0 HTTP/2.0 PRI CONNECT OPTIONS * : ; chunked -1 %00 %zz ../ ?',
      '\r\n',
      '\r\n\r\n',
      ' ',
    ),
    feed: async (input) => {
      const text = await exchange(await runningOf(program), input);
      for (const [, status = ''] of text.matchAll(/^HTTP\/1\.[01] (\d{3})/gm))
        checkStatus(Number(status), text);
    },
    check: () => check(program),
    close: () => close(program),
  };
}

/** Sends bytes on a new connection. @returns the response, cut off after a moment */
function exchange({ url, tls }: Running, input: Buffer): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect({
      port: Number(url.port),
      host: url.hostname,
      ...tls,
      servername: 'archwright-agent',
    });
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(received);
    };
    const timer = setTimeout(end, headWaitMs);
    socket.on('secureConnect', () => socket.end(input));
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    socket.on('error', end).on('close', end);
  });
}

export const processTargets: readonly FuzzTarget[] = [
  bodies('webhook', '/mutate?timeout=10s', reviews),
  bodies('agent', '/v1/facts', factsRequests),
  heads('webhook', '/mutate'),
  heads('agent', '/v1/facts'),
];
