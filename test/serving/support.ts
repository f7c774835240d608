/** For tests of servers: clients on real sockets, and TLS directories. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { Agent as PlainAgent, request as plainRequest, type IncomingHttpHeaders } from 'node:http';
import { Agent, request as tlsRequest, type RequestOptions } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { PemPair } from '../support/certificates.ts';

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export function send(
  url: string,
  options: RequestOptions & { body?: string | Buffer } = {},
): Promise<Received> {
  const { body, ...rest } = options;
  return new Promise((resolve, reject) => {
    const make = url.startsWith('https:') ? tlsRequest : plainRequest;
    const request = make(url, rest, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

export function keepAlive(t: Test, url: string, options: { ca?: string; maxSockets?: number } = {}): Agent {
  const agent = url.startsWith('https:')
    ? new Agent({ keepAlive: true, ...options })
    : (new PlainAgent({ keepAlive: true, ...options }) as Agent);
  t.teardown(() => agent.destroy());
  return agent;
}

/** A raw connection, to misbehave. */
export async function rawConnection(
  t: Test,
  port: number,
  localAddress = '127.0.0.1',
): Promise<Socket & { received(): string }> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  t.teardown(() => socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  return Object.assign(socket, { received: () => text });
}

/** A directory with `tls.crt`, `tls.key` and, where given, `ca.crt`; removed after the test. */
export async function tlsDirectory(t: Test, pair: PemPair, ca?: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'archwright-tls-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  await writeTls(dir, pair, ca);
  return dir;
}

/** Replaces the files of a TLS directory, each atomically. */
export async function writeTls(dir: string, pair: PemPair, ca?: string): Promise<void> {
  await replace(dir, 'tls.crt', pair.cert);
  await replace(dir, 'tls.key', pair.key);
  if (ca !== undefined) await replace(dir, 'ca.crt', ca);
}

async function replace(dir: string, name: string, text: string): Promise<void> {
  await writeFile(join(dir, `.${name}.new`), text);
  await rename(join(dir, `.${name}.new`), join(dir, name));
}
