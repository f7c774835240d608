/** A webhook, its agent and a registry, as the chart runs them, with their resident memory. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { createPki, type Pki } from '../../fleet/support.ts';
import { send, tlsDirectory } from '../../serving/support.ts';
import { until } from '../../support/until.ts';
import { multiArch } from '../../support/registry/content.ts';
import { ca as webhookCa, podOf, admittedOf, review, serverPair } from '../../webhook/support.ts';
import { measured, MiB, patienceMs } from './measured.ts';
import { directory, registry } from '../../cmd/world.ts';

/** @param rogues URLs of further agents, with certificates of the given authority */
export async function startMeasured(t: Test, rogues: readonly string[] = [], authority?: Pki) {
  const dir = directory(t);
  const host = await registry(t);
  const pki = authority ?? (await createPki(t));
  writeFileSync(join(dir, 'registry.pem'), host.ca);
  const tlsDir = await tlsDirectory(t, serverPair);
  const agentFlags = [
    '--tls-dir',
    pki.serverDir,
    '--state-dir',
    dir,
    '--ca-files',
    join(dir, 'registry.pem'),
  ];
  const agent = await measured(t, 'agent', agentFlags);
  const webhookFlags = ['--tls-dir', tlsDir, '--inline-budget', '1s'];
  const urls = [agent.url, ...rogues].flatMap((url) => ['--agents', url]);
  const agents = [...urls, '--agent-tls-dir', pki.clientDir];
  const webhook = await measured(t, 'webhook', [...webhookFlags, ...agents]);
  const post = (body: string) =>
    send(`${webhook.url}/mutate?timeout=10s`, {
      method: 'POST',
      agent: false,
      ca: webhookCa.cert,
      headers: { 'content-type': 'application/json' },
      body,
    });
  const statusesOf = async (bodies: readonly string[]) => {
    const results = await Promise.allSettled(bodies.map(post));
    return results.map((result) => (result.status === 'fulfilled' ? result.value.status : 'closed'));
  };
  /** After each attack. */
  const survived = async (t: Test, what: string): Promise<void> => {
    host.push('good/app', what, multiArch(['linux/arm64']));
    const pod = review({ object: podOf([`${host.host}/good/app:${what}`]) });
    await until(
      async () => {
        const { status, body } = await post(pod);
        return status === 200 && /patch/.test(body) && admittedOf({ status, body, headers: {} }).allowed;
      },
      'a good pod is placed',
      patienceMs,
    );
    for (const [name, { peakBytes, limit }] of Object.entries({ webhook, agent })) {
      t.comment(`${name}, ${what}: ${Math.round(peakBytes() / MiB)} of ${limit / MiB} MiB`);
      t.ok(peakBytes() < limit, `${name}: ${what}`);
    }
  };
  await survived(t, 'no-attack');
  return { host, pki, webhook, agent, statusesOf, survived };
}
