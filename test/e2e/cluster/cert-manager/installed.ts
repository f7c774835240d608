/** archwright with certificates of cert-manager, which reach the agent and its clients late, as by a kubelet. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:tls';
import type { Test } from 'tap';
import { agentServerName } from '../../../../src/certificates/agent-names.ts';
import { readCertificates, sameCertificates, type Certificate } from '../../../../src/certificates/pem.ts';
import { readCaBundles, type WebhookConfiguration } from '../../../../src/controller/state/webhooks-file.ts';
import { createConnection } from '../../../../src/fleet/connection.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { ServingError } from '../../../../src/serving/address.ts';
import { openTlsFiles } from '../../../../src/serving/tls-files.ts';
import { silentLog } from '../../../support/captured.ts';
import { noTls, ownNamespace, startAgent } from '../archwright/archwright.ts';
import { startByChart } from '../archwright/by-chart.ts';
import { mount, secretTexts } from '../archwright/issued.ts';
import { patience } from '../harness.ts';
import { renew, startCertManager } from './program.ts';

/** Secrets of the four, and the Certificates that cert-manager makes them from. */
export const leaves = {
  'archwright-webhook-tls': 'archwright-webhook',
  'archwright-agent-tls': 'archwright-agent',
  'archwright-webhook-client-tls': 'archwright-webhook-client',
  'archwright-controller-client-tls': 'archwright-controller-client',
} as const;
export type LeafSecret = keyof typeof leaves;
const clientSecrets = ['archwright-webhook-client-tls', 'archwright-controller-client-tls'] as const;

/** Starts everything with the chart's own issuer. Resolves when certificates are issued and components ready. */
export async function install(t: Test) {
  const chart = await startByChart(t, { certificates: 'certManager' }, startCertManager);
  const { cluster, images } = chart;
  const agentDir = await mount(t, cluster, 'archwright-agent-tls', 2000);
  const dirs = [
    await mount(t, cluster, clientSecrets[0], 0),
    await mount(t, cluster, clientSecrets[1], 1000),
  ];
  const agent = await startAgent(cluster, {
    tls: { ...noTls, agent: agentDir },
    settings: images.settings,
  });
  const { webhook } = await chart.start({ 'on-unknown-image': 'gate' }, [agent]);

  /** The certificate of a Secret, the rest of its chain, and `ca.crt`. */
  async function issued(secretName: string) {
    const texts = await secretTexts(cluster, secretName);
    const certificatesIn = (key: string): readonly Certificate[] => readCertificates(texts[key] ?? '') ?? [];
    const [certificate, ...intermediates] = certificatesIn('tls.crt');
    if (certificate === undefined) throw new Error(`${secretName}: no certificate`);
    return { certificate, intermediates, bundle: certificatesIn('ca.crt') };
  }

  /** Asks the agent as each of its clients, by new connections. @throws AgentError */
  async function askAgent(): Promise<void> {
    for (const dir of dirs) {
      const connection = createConnection({ tls: await opened(dir), serverNameOf: () => agentServerName });
      try {
        await connection.json(agent.url, '/v1/info', { signal: patience(), maxBytes: 100_000 });
      } finally {
        await connection.close();
      }
    }
  }

  /** Waits until webhook and agent present the certificates in their Secrets. */
  async function untilPresented(): Promise<void> {
    for (const [url, secretName] of [
      [webhook.url, 'archwright-webhook-tls'],
      [agent.url, 'archwright-agent-tls'],
    ] as const)
      await retry(async () => {
        if ((await presentedBy(url)) !== (await issued(secretName)).certificate.id)
          throw new Error(`${url} does not present its certificate`);
      });
  }

  return {
    cluster,
    images,
    apply: chart.apply,
    issued,
    askAgent,
    untilPresented,
    renewAll: async (): Promise<void> => {
      for (const name of Object.values(leaves)) await renew(cluster, ownNamespace, name);
    },
    /** Waits until all trust each other: `caBundle` equals the bundle in the webhook's Secret, and the agent answers. */
    untilTrusted: async (): Promise<void> => {
      const { bundle } = await issued('archwright-webhook-tls');
      const path = paths.mutatingWebhookConfigurations('archwright');
      await cluster.waitFor<WebhookConfiguration>(path, (now) => {
        const bundles = now === undefined ? [] : readCaBundles(now);
        return bundles.length > 0 && bundles.every((each) => sameCertificates(each, bundle));
      });
      await untilPresented();
      await retry(askAgent);
    },
  };
}

/** Files that are being replaced are read again. */
async function opened(dir: string) {
  for (;;) {
    try {
      return await openTlsFiles({ dir, use: 'client', ca: true, log: silentLog });
    } catch (error) {
      if (!(error instanceof ServingError)) throw error;
    }
  }
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
