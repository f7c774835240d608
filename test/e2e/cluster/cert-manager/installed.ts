/**
 * archwright with certificates of cert-manager: the chart's objects for it, Service, RBAC and webhook
 * configuration in a real API server; agent, webhook and controller as child processes. The certificates
 * arrive late, as by a kubelet. The API server calls the webhook by its Service, so certificate names matter.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import { agentServerName } from '../../../../src/certificates/agent-names.ts';
import { createConnection, type AgentConnection } from '../../../../src/fleet/connection.ts';
import { openTlsFiles } from '../../../../src/serving/tls-files.ts';
import { readCertificates, type Certificate } from '../../../../src/certificates/pem.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { ServingError } from '../../../../src/serving/address.ts';
import {
  ownNamespace,
  startAgent,
  startController,
  startWebhook,
  type TlsDirs,
} from '../archwright/archwright.ts';
import { objectsOf } from '../../chart/rendered.ts';
import { render } from '../../chart/helm.ts';
import { maxGateMs } from '../faults/pod-group.ts';
import { type PodNow } from '../control-plane/pods.ts';
import { shortLease } from '../archwright/start.ts';
import { nodes } from '../faults/setup.ts';
import { patience, startCluster } from '../harness.ts';
import { startImages } from '../archwright/images.ts';
import { endpointSlice, mount, secretTexts } from '../archwright/issued.ts';
import { freePort, ownAddress } from '../control-plane/ports.ts';
import { startCertManager } from './program.ts';
import { silentLog } from '../../../support/captured.ts';

/** Secrets of the four, and the Certificates that cert-manager makes them from. */
export const leaves = {
  'archwright-webhook-tls': 'archwright-webhook',
  'archwright-agent-tls': 'archwright-agent',
  'archwright-webhook-client-tls': 'archwright-webhook-client',
  'archwright-controller-client-tls': 'archwright-controller-client',
} as const;
export type LeafSecret = keyof typeof leaves;
export const leafSecrets = Object.keys(leaves) as readonly LeafSecret[];

export const clientSecrets = ['archwright-webhook-client-tls', 'archwright-controller-client-tls'] as const;

/** Delay of a changed Secret. */
const lateMs: Readonly<Record<LeafSecret, number>> = {
  'archwright-webhook-tls': 2000,
  'archwright-agent-tls': 2000,
  'archwright-webhook-client-tls': 0,
  'archwright-controller-client-tls': 1000,
};

export type Installed = Awaited<ReturnType<typeof install>>;

/** Starts everything with the chart's own issuer. Resolves when certificates are issued and components ready. */
export async function install(t: Test) {
  // Services are reached by their endpoints, since no kube-proxy runs.
  const apiServerFlags = ['--enable-aggregator-routing=true'];
  const cluster = await startCluster({ nodes, schedulerQps: 500, apiServerFlags }, t);
  const images = await startImages(cluster);
  await cluster.createNamespace(ownNamespace);
  await startCertManager(cluster);
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);

  const config = join(cluster.directory, 'config');
  await mkdir(config);
  const webhooksFile = join(config, 'webhooks.yaml');
  /** Applies the chart's objects again, as `helm upgrade` would. @param certManager the value of that name */
  const apply = async (certManager: object): Promise<void> => {
    const values = { certificates: 'certManager', certManager, failurePolicy: 'Fail', timeoutSeconds: 10 };
    const all = objectsOf(render('helm3', values));
    await cluster.applyYaml(
      all
        .filter(isWanted)
        .map((each) => stringify(each))
        .join('---\n'),
    );
    const map = all.find(({ data }) => data?.['webhooks.yaml'] !== undefined);
    await writeFile(webhooksFile, map?.data?.['webhooks.yaml'] ?? '');
  };
  await apply({});

  const port = await freePort();
  await cluster.applyYaml(endpointSlice(port));
  const dirs = {} as Record<LeafSecret, string>;
  for (const name of leafSecrets) dirs[name] = await mount(t, cluster, name, lateMs[name]);
  // Webhook and controller read their Secrets with the rights of the chart.
  const agentTls = dirs['archwright-agent-tls'];
  const tls: TlsDirs = {
    webhookCa: '',
    webhook: '',
    agent: agentTls,
    webhookClient: '',
    controllerClient: '',
  };
  const accountOf = (part: string): Promise<string> => {
    const user = { cn: `system:serviceaccount:${ownNamespace}:archwright-${part}` };
    return cluster.identities.kubeconfig(user, cluster.server);
  };
  const agent = await startAgent(cluster, { tls, settings: images.settings });
  const common = { 'on-unknown-image': 'gate' };
  const webhook = await startWebhook(cluster, {
    tls,
    agents: [agent],
    port,
    settings: { ...common, kubeconfig: await accountOf('webhook'), listen: `${ownAddress}:${port}` },
  });
  const controller = await startController(cluster, {
    tls,
    agents: [agent],
    tuning: shortLease,
    settings: {
      ...common,
      kubeconfig: await accountOf('controller'),
      'max-gate-duration': `${maxGateMs}ms`,
      'webhook-configuration': 'archwright',
      'webhooks-file': webhooksFile,
    },
  });

  return {
    cluster,
    images,
    pods,
    agent,
    webhook: { ...webhook, url: `https://${ownAddress}:${port}` },
    controller,
    apply,
    /** The certificate of a Secret, the rest of its chain, and `ca.crt`. */
    issued: async (secretName: string) => {
      const texts = await secretTexts(cluster, secretName);
      const certificatesIn = (key: string): readonly Certificate[] => {
        const found = readCertificates(texts[key] ?? '');
        if (found === undefined) throw new Error(`${secretName}: no certificates in ${key}`);
        return found;
      };
      const [certificate, ...intermediates] = certificatesIn('tls.crt');
      if (certificate === undefined) throw new Error(`${secretName}: no certificate`);
      return { certificate, intermediates, bundle: certificatesIn('ca.crt') };
    },
    dirs,
    /** Sends a request to the agent with the files of a directory. @throws AgentError */
    askAgent: async (tlsDir: string): Promise<void> => {
      const connection = await open(tlsDir);
      try {
        await connection.json(agent.url, '/v1/info', { signal: patience(), maxBytes: 100_000 });
      } finally {
        await connection.close();
      }
    },
  };
}

/** A new connection, with its handshake. */
async function open(tlsDir: string): Promise<AgentConnection> {
  for (;;) {
    try {
      return createConnection({
        tls: await openTlsFiles({ dir: tlsDir, use: 'client', ca: true, log: silentLog }),
        serverNameOf: () => agentServerName,
      });
    } catch (error) {
      // Files that are being replaced are read again.
      if (!(error instanceof ServingError)) throw error;
    }
  }
}

/** The parts of the chart that make sense in a cluster without its pods. */
function isWanted({ apiVersion, kind, metadata }: KubeObject): boolean {
  if (apiVersion === 'cert-manager.io/v1' || apiVersion === 'rbac.authorization.k8s.io/v1') return true;
  const isService = kind === 'Service' && metadata?.name === 'archwright-webhook';
  return kind === 'MutatingWebhookConfiguration' || isService;
}
