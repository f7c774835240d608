/** Waits for the effects of issued certificates: servers present them, and clients trust them. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:tls';
import { sameCertificates } from '../../../../src/certificates/pem.ts';
import { readCaBundles, type WebhookConfiguration } from '../../../../src/controller/state/webhooks-file.ts';
import { ownNamespace } from '../archwright/archwright.ts';
import { clientSecrets, leaves, type Installed } from './installed.ts';
import { renew } from './program.ts';
import { paths } from '../../../../src/kube/api/paths.ts';

export async function renewAll({ cluster }: Installed): Promise<void> {
  for (const name of Object.values(leaves)) await renew(cluster, ownNamespace, name);
}

/** Waits until `caBundle` equals the bundle in the webhook's Secret and the webhook has its certificate. */
export async function untilTrusted(installed: Installed): Promise<void> {
  const { bundle } = await installed.issued('archwright-webhook-tls');
  const path = paths.mutatingWebhookConfigurations('archwright');
  await installed.cluster.waitFor<WebhookConfiguration>(path, (now) => {
    const bundles = now === undefined ? [] : readCaBundles(now);
    return bundles.length > 0 && bundles.every((each) => sameCertificates(each, bundle));
  });
  await untilPresented(installed);
}

export async function untilPresented({ issued, webhook, agent }: Installed): Promise<void> {
  for (const [url, secretName] of [
    [webhook.url, 'archwright-webhook-tls'],
    [agent.url, 'archwright-agent-tls'],
  ] as const) {
    await retry(async () => {
      if ((await presentedBy(url)) !== (await issued(secretName)).certificate.id)
        throw new Error(`${url} does not present its certificate`);
    });
  }
}

/** Waits until the agent answers both clients: their Secrets arrive at different times. */
export async function untilAnswered({ askAgent, dirs }: Installed): Promise<void> {
  await retry(async () => {
    for (const name of clientSecrets) await askAgent(dirs[name]);
  });
}

/** Retries until it succeeds. @throws its last error after two minutes */
async function retry(attempt: () => Promise<void>): Promise<void> {
  const until = performance.now() + 120_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > until) throw error;
      await pause(100);
    }
  }
}

/** @returns the identity of the certificate that a server presents now */
async function presentedBy(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      const { fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      resolve(fingerprint256.replaceAll(':', '').toLowerCase());
    });
    socket.on('error', reject);
  });
}
