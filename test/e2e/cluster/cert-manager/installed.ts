/**
 * archwright with certificates of cert-manager: the chart's objects for it, Service, RBAC and webhook configuration in a real API server;
 * agent, webhook and controller as child processes with the issued certificates, which arrive late, as by a kubelet. The API server
 * calls the webhook by its Service, so the names in its certificate count.
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

/** Delay of a changed Secret. */
const lateMs: Readonly<Record<LeafSecret, number>> = {
  'archwright-webhook-tls': 2000,
  'archwright-agent-tls': 2000,
  'archwright-webhook-client-tls': 0,
  'archwright-controller-client-tls': 1000,
};

/** An address of this machine for an EndpointSlice, which cannot have loopback; `undefined`: there is none. */
export const ownAddress = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

/** The content of one Secret of cert-manager. */
export interface Issued {
  readonly certificate: Certificate;
  /** The rest of the chain in `tls.crt`. */
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
  /** Removes the webhook's address from its Service, and adds it again. */
  leave(): Promise<void>;
  come(): Promise<void>;
  readonly issued: (secretName: string) => Promise<Issued>;
  /** Folders of mounted Secrets. */
  readonly dirs: Readonly<Record<LeafSecret, string>>;
  /** Sends a request to the agent with the files of a directory. @throws AgentError */
  readonly askAgent: (tlsDir: string) => Promise<void>;
}

/**
 * Starts all of it, with the chart's own issuer. Resolves when all certificates are issued and all components are ready.
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
  /** With the rights that the chart grants. */
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

/** A new connection, with its handshake. */
async function open(tlsDir: string): Promise<AgentConnection> {
  for (;;) {
    try {
      return await openConnection({ dir: tlsDir, log: createLog({ level: 'silent' }) });
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

/** This machine's address for the Service of the webhook. Kubernetes' own slice is empty, because no pod runs. */
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
