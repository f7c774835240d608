/** Agent and webhook of the image with a test registry: TLS, HTTP and JSON on that architecture. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import { createCa, issueTls, type IssueOptions } from '../../support/certificates.ts';
import { image as singleArch } from '../../support/registry/content.ts';
import { startTestRegistry } from '../../support/registry/server.ts';
import { freePorts } from '../cluster/control-plane/ports.ts';
import { ready, startProcess } from '../cluster/control-plane/processes.ts';
import { command, mountPath, type Unpacked } from './unpacked.ts';
import { like } from '../../support/like.ts';

/** Under emulation, a process takes a while to end. */
const stopTimeoutMs = 30_000;
const entry = 'cmd/archwright.ts';

export async function chain(t: Test, image: Unpacked, mounted: string): Promise<void> {
  const registry = await startTestRegistry();
  t.teardown(() => registry.close());
  registry.push('app', '1', singleArch('linux/s390x'));
  const ca = await createCa();
  const write = async (name: string, options: IssueOptions): Promise<string> => {
    await issueTls(ca, join(mounted, name), options);
    return `/${mountPath}/${name}`;
  };
  writeFileSync(join(mounted, 'registry.crt'), registry.ca ?? '');
  const logs = t.testdir();
  const start = async (
    name: string,
    flags: Readonly<Record<string, string>>,
    run = (words: readonly string[]) => command(image, mounted, words),
  ) => {
    const [port = 0, metrics = 0] = await freePorts(2);
    const all = { listen: `127.0.0.1:${port}`, 'metrics-listen': `127.0.0.1:${metrics}`, ...flags };
    const words = Object.entries(all).map(([flag, value]) => `--${flag}=${value}`);
    const env = { PATH: process.env['PATH'] ?? '' };
    const process_ = startProcess({ name, ...run([name, ...words]), env, logs });
    t.teardown(() => process_.stop());
    await ready(process_, async () => {
      const response = await fetch(`http://127.0.0.1:${metrics}/readyz`);
      await response.body?.cancel();
      return response.ok;
    });
    return { process: process_, url: `https://127.0.0.1:${port}` };
  };

  const agent = await start('agent', {
    'tls-dir': await write('agent', { cn: 'archwright-agent', dns: ['archwright-agent'] }),
    'host-root': '/host',
    'ca-files': `/${mountPath}/registry.crt`,
  });
  const webhook = await start('webhook', {
    'tls-dir': await write('webhook', { cn: 'archwright-webhook', ip: ['127.0.0.1'] }),
    'agent-tls-dir': await write('webhook-client', { cn: 'archwright-webhook', client: true }),
    agents: agent.url,
    // Under emulation, responses take longer than the default of 150 ms.
    'inline-budget': '10s',
    'drain-time': '0s',
  });
  const object = {
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'web', image: `${registry.host}/app:1` }] },
  };
  const [, , body] = await send(webhook.url, ca.cert, 'POST', '/mutate?timeout=30s', reviewOf(object));
  const review = JSON.parse(body) as { readonly response: { readonly patch?: string } };
  like(t, review, { response: { uid: 'u', allowed: true, patchType: 'JSONPatch' } });
  const patch = Buffer.from(review.response.patch ?? '', 'base64').toString();
  t.match(patch, /"kubernetes\.io\/arch"[^}]*"s390x"/);

  // The bundle has only a part of the table of media types.
  const source = await start('webhook', { 'tls-dir': join(mounted, 'webhook') }, (words) => ({
    program: process.execPath,
    args: [entry, ...words],
  }));
  for (const [method, path, body = ''] of [
    ['GET', '/healthz'],
    ['GET', '/readyz'],
    ['GET', '/nowhere'],
    ['POST', '/mutate', '{"kind":"Pod"}'],
    ['POST', '/mutate', 'no JSON'],
    ['POST', '/validate', reviewOf({})],
  ] as const) {
    const [bundled, plain] = [webhook, source].map(({ url }) => send(url, ca.cert, method, path, body));
    t.strictSame(await bundled, await plain, `${method} ${path} ${body}`);
    if (path === '/healthz') t.strictSame(await bundled, [200, 'text/plain; charset=utf-8', 'ok\n']);
  }

  for (const { process: running } of [webhook, agent]) {
    running.signal('SIGTERM');
    const late = setTimeout(() => running.signal('SIGKILL'), stopTimeoutMs);
    t.equal(await running.ended, 0, `${running.name} ends by itself on SIGTERM`);
    clearTimeout(late);
  }
}

function reviewOf(object: object): string {
  const kind = { group: '', version: 'v1', kind: 'Pod' };
  const resource = { group: '', version: 'v1', resource: 'pods' };
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u', operation: 'CREATE', namespace: 'default', kind, resource, object },
  });
}

async function send(
  url: string,
  ca: string,
  method: string,
  path: string,
  body: string,
): Promise<readonly [status: number | undefined, type: string | undefined, text: string]> {
  const headers = { 'content-type': 'application/json' };
  const options = { ca, method, headers, agent: false, signal: AbortSignal.timeout(60_000) };
  const sent = request(`${url}${path}`, options).end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return [response.statusCode, response.headers['content-type'], await text(response)];
}
