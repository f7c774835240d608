/**
 * archwright with certificates of cert-manager: the chart's own objects for it, Service, rights, webhooks and webhook configuration in a real
 * API server, where cert-manager issues them; agent, webhook and controller as processes of their own on what was issued, which reaches
 * them late, as by a kubelet. The webhook is called by its Service, so that the names in its certificate count.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { openConnection, type AgentConnection } from '../../../../src/fleet/agents/connection.ts';
import { readCertificates, type Certificate } from '../../../../src/controller/certificates/pem.ts';
import { ServingError } from '../../../../src/serving/error.ts';
import { createLog } from '../../../../src/telemetry/log.ts';
import {
  ownNamespace,
  startAgent,
  startController,
  startWebhook,
  type Server,
  type Settings,
  type TlsDirs,
} from '../archwright.ts';
import { maxGateMs, type Ground } from '../faults/crowd.ts';
import { type PodNow } from '../pods.ts';
import { shortLease } from '../start-archwright.ts';
import { nodes } from '../faults/scene.ts';
import { patience, startCluster } from '../harness.ts';
import { startImages } from '../images.ts';
import { mount, secretTexts } from '../issued.ts';
import { freePorts } from '../ports.ts';
import { watch } from '../watch.ts';
import { startCertManager } from './program.ts';
import { renderChart } from './rendered.ts';

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

/** How late a changed Secret arrives, each at a time of its own. */
const lateMs: Readonly<Record<LeafSecret, number>> = {
  'archwright-webhook-tls': 2000,
  'archwright-agent-tls': 2000,
  'archwright-webhook-client-tls': 0,
  'archwright-controller-client-tls': 1000,
};

/** An address of this machine that an EndpointSlice may have, which loopback is not; `undefined` where there is none. */
export const ownAddress = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

/** What one Secret of cert-manager holds. */
export interface Issued {
  readonly certificate: Certificate;
  /** What is shown with it. */
  readonly intermediates: readonly Certificate[];
  /** `ca.crt`. */
  readonly bundle: readonly Certificate[];
}

export interface Installed extends Ground {
  readonly webhook: Server;
  readonly controller: Server;
  readonly agent: Server;
  /** Applies the chart's objects again, as `helm upgrade` would. */
  apply(certManager: object): Promise<void>;
  /** Takes the webhook from behind its Service, where nobody is then; and puts it there again. */
  leave(): Promise<void>;
  come(): Promise<void>;
  readonly issued: (secretName: string) => Promise<Issued>;
  /** Where Secrets are mounted. */
  readonly dirs: Readonly<Record<LeafSecret, string>>;
  /** Asks the agent with the files of a directory, as webhook and controller do. @throws AgentError */
  readonly askAgent: (tlsDir: string) => Promise<void>;
}

/**
 * Starts all of it, with an issuer of its own; resolves when cert-manager has issued everything and everybody is ready.
 * @param options.settings of the controller
 */
export async function install(t: Test, options: { readonly settings?: Settings } = {}): Promise<Installed> {
  const cluster = await startCluster({
    nodes,
    schedulerQps: 500,
    // Services are reached by their endpoints, since no kube-proxy runs.
    apiServerFlags: ['--enable-aggregator-routing=true'],
  });
  t.teardown(() => cluster.stop());
  const { client } = cluster;
  const images = await startImages(cluster);
  await cluster.createNamespace(ownNamespace);
  await startCertManager(cluster);
  const pods = await watch<PodNow>(client, '/api/v1/namespaces/default/pods');
  t.teardown(() => pods.close());

  const config = join(cluster.directory, 'config');
  await mkdir(config);
  const webhooksFile = join(config, 'webhooks.yaml');
  const apply = async (values: object): Promise<void> => {
    const { objects, webhooks } = renderChart(values);
    await cluster.applyYaml(objects);
    await writeFile(webhooksFile, webhooks);
  };
  await apply({});

  const [port = 0] = await freePorts(1);
  const come = (): Promise<void> => cluster.applyYaml(sliceOf(port));
  await come();
  const mounted = await Promise.all(leafSecrets.map((name) => mount(t, cluster, name, lateMs[name])));
  const dirs = byName(leafSecrets, mounted);
  const tls: TlsDirs = {
    webhookCa: '',
    webhook: dirs['archwright-webhook-tls'],
    agent: dirs['archwright-agent-tls'],
    webhookClient: dirs['archwright-webhook-client-tls'],
    controllerClient: dirs['archwright-controller-client-tls'],
  };
  /** The rights are those that the chart gives. */
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
    settings: {
      ...common,
      ...shortLease,
      kubeconfig: await accountOf('controller'),
      'max-gate-duration': `${maxGateMs}ms`,
      'webhook-configuration': 'archwright',
      'webhooks-file': webhooksFile,
      ...options.settings,
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
    come,
    leave: async () => {
      const slices = `/apis/discovery.k8s.io/v1/namespaces/${ownNamespace}/endpointslices`;
      await cluster.delete(`${slices}/${sliceName}`);
    },
    issued: async (secretName) => {
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
    askAgent: async (tlsDir) => {
      const connection = await open(tlsDir);
      try {
        await connection.json(agent.url, '/v1/info', { signal: patience(), maxBytes: 100_000 });
      } finally {
        await connection.close();
      }
    },
  };
}

/** With the handshake that a pool of connections would spare. */
async function open(tlsDir: string): Promise<AgentConnection> {
  for (;;) {
    try {
      return await openConnection({ tlsDir, log: createLog({ level: 'silent' }) });
    } catch (error) {
      // Files that are being replaced are read again.
      if (!(error instanceof ServingError)) throw error;
    }
  }
}

function byName<N extends string, T>(names: readonly N[], values: readonly T[]): Readonly<Record<N, T>> {
  return Object.fromEntries(names.map((name, index) => [name, values[index]])) as Record<N, T>;
}

const sliceName = 'archwright-webhook-e2e';

/** This machine behind the Service of the webhook; the one of Kubernetes itself is empty, since no pod is there. */
function sliceOf(port: number): string {
  return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ${sliceName}
  namespace: ${ownNamespace}
  labels: { kubernetes.io/service-name: archwright-webhook, endpointslice.kubernetes.io/managed-by: e2e }
addressType: IPv4
ports: [{ name: webhook, port: ${port}, protocol: TCP }]
endpoints: [{ addresses: ['${ownAddress}'], conditions: { ready: true } }]
`;
}
