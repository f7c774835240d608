/** Agent and webhook of the image beside a registry of the test: TLS, HTTP and JSON of that architecture from end to end. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import { createCa, type IssueOptions } from '../../support/certificates.ts';
import { image as singleArch } from '../../support/registry/content.ts';
import { startTestRegistry } from '../../support/registry/server.ts';
import { freePorts } from '../cluster/ports.ts';
import { ready, startProcess, type Running } from '../cluster/processes.ts';
import { command, sceneInside, type Unpacked } from './unpacked.ts';

/** Emulated, a process takes a moment to end. */
const politeMs = 30_000;
/** Emulated, no answer comes within the default of 150 ms. */
const inlineBudget = '10s';

/** @param scene folder of the image's own files */
export async function chain(t: Test, image: Unpacked, scene: string): Promise<void> {
  const registry = await startTestRegistry();
  t.teardown(() => registry.close());
  registry.push('app', '1', singleArch('linux/s390x'));
  const ca = await createCa();
  const write = async (name: string, options: IssueOptions): Promise<string> => {
    const { cert, key } = await ca.issue(options);
    mkdirSync(join(scene, name));
    for (const [file, pem] of Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert }))
      writeFileSync(join(scene, name, file), pem);
    return `/${sceneInside}/${name}`;
  };
  writeFileSync(join(scene, 'registry.crt'), registry.ca ?? '');
  const logs = t.testdir();
  const start = async (name: string, flags: Readonly<Record<string, string>>): Promise<Started> => {
    const [port = 0, metrics = 0] = await freePorts(2);
    const all = { listen: `127.0.0.1:${port}`, 'metrics-listen': `127.0.0.1:${metrics}`, ...flags };
    const words = Object.entries(all).map(([flag, value]) => `--${flag}=${value}`);
    const { program, args } = command(image, scene, [name, ...words]);
    const process_ = startProcess({ name, program, args, env: { PATH: process.env['PATH'] ?? '' }, logs });
    t.teardown(() => process_.stop());
    await ready(process_, async () => {
      const answer = await fetch(`http://127.0.0.1:${metrics}/readyz`);
      await answer.body?.cancel();
      return answer.ok;
    });
    return { process: process_, url: `https://127.0.0.1:${port}` };
  };

  const agent = await start('agent', {
    'tls-dir': await write('agent', { cn: 'archwright-agent', dns: ['archwright-agent'] }),
    'host-root': '/host',
    'ca-files': `/${sceneInside}/registry.crt`,
  });
  const webhook = await start('webhook', {
    'tls-dir': await write('webhook', { cn: 'archwright-webhook', ip: ['127.0.0.1'] }),
    'agent-tls-dir': await write('webhook-client', { cn: 'archwright-webhook', client: true }),
    agents: agent.url,
    'inline-budget': inlineBudget,
    'drain-time': '0s',
  });
  const answer = await review(webhook.url, ca.cert, `${registry.host}/app:1`);
  t.match(answer, { response: { uid: 'u', allowed: true, patchType: 'JSONPatch' } });
  const patch = Buffer.from(answer.response.patch ?? '', 'base64').toString();
  t.match(patch, /"kubernetes\.io\/arch"[^}]*"s390x"/);

  for (const { process: running } of [webhook, agent]) {
    running.signal('SIGTERM');
    const late = setTimeout(() => running.signal('SIGKILL'), politeMs);
    t.equal(await running.ended, 0, `${running.name} ends by itself on SIGTERM`);
    clearTimeout(late);
  }
}

interface Started {
  readonly process: Running;
  readonly url: string;
}

interface Answer {
  readonly response: { readonly patch?: string };
}

async function review(url: string, ca: string, image: string): Promise<Answer> {
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'web', image }] },
  };
  const body = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u',
      operation: 'CREATE',
      namespace: 'default',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      object,
    },
  };
  const signal = AbortSignal.timeout(60_000);
  const sent = request(`${url}/mutate?timeout=30s`, { ca, method: 'POST', agent: false, signal });
  sent.setHeader('content-type', 'application/json');
  const answer = new Promise<string>((resolve, reject) => {
    sent.on('error', reject).on('response', (response) => resolve(text(response)));
  });
  sent.end(JSON.stringify(body));
  return JSON.parse(await answer) as Answer;
}
