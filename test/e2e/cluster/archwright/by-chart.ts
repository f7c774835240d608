/**
 * Webhook and controller with the chart's Service, rights, policies and webhook configuration in a real API
 * server, which calls the webhook by its Service: the names in certificates matter.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { render } from '../../chart/helm.ts';
import { objectsOf } from '../../chart/rendered.ts';
import { freePort, ownAddress } from '../control-plane/ports.ts';
import { startCluster, type Cluster } from '../harness.ts';
import {
  noTls,
  ownNamespace,
  startController,
  startWebhook,
  type Server,
  type Settings,
} from './archwright.ts';
import { startImages } from './images.ts';
import { shortLease } from './start.ts';

/** Why a test by a Service is skipped. */
export const skip = ownAddress === undefined && 'this machine has no address that a Service could have';

/** This machine's address for the Service. Kubernetes' own slice is empty without pods. */
const endpointSlice = (port: number): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: archwright-webhook-e2e
  namespace: ${ownNamespace}
  labels: { kubernetes.io/service-name: archwright-webhook, endpointslice.kubernetes.io/managed-by: e2e }
addressType: IPv4
ports: [{ name: webhook, port: ${port}, protocol: TCP }]
endpoints: [{ addresses: ['${ownAddress}'], conditions: { ready: true } }]
`;

/** The parts of the chart that make sense in a cluster without its pods. */
function isWanted({ apiVersion, kind = '', metadata }: KubeObject): boolean {
  if (apiVersion === 'cert-manager.io/v1' || apiVersion === 'rbac.authorization.k8s.io/v1') return true;
  if (kind === 'Service') return metadata?.name === 'archwright-webhook';
  return /^(?:MutatingWebhookConfiguration|ValidatingAdmissionPolicy(?:Binding)?)$/.test(kind);
}

/** @param prepare the cluster before the chart's objects are applied */
export async function startByChart(
  t: Test,
  values: object,
  prepare: (cluster: Cluster) => Promise<unknown> = () => Promise.resolve(),
) {
  // Services are reached by their endpoints, since no kube-proxy runs.
  const apiServerFlags = ['--enable-aggregator-routing=true'];
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 }, apiServerFlags }, t);
  await cluster.createNamespace(ownNamespace);
  await prepare(cluster);
  const images = await startImages(cluster);
  const config = join(cluster.directory, 'config');
  await mkdir(config);
  const webhooksFile = join(config, 'webhooks.yaml');
  /** Applies the chart's objects, as `helm upgrade` would. */
  const apply = async (more: object = {}): Promise<void> => {
    const all = { ...values, ...more, failurePolicy: 'Fail', timeoutSeconds: 10 };
    const objects = objectsOf(render('helm4', all, ['--no-hooks']));
    const texts = objects.filter(isWanted).map((each) => stringify(each));
    await cluster.applyYaml(texts.join('---\n'));
    const map = objects.find(({ data }) => data?.['webhooks.yaml'] !== undefined);
    await writeFile(webhooksFile, map?.data?.['webhooks.yaml'] ?? '');
  };
  await apply();
  const port = await freePort();
  await cluster.applyYaml(endpointSlice(port));
  const accountOf = (part: string): Promise<string> =>
    cluster.identities.kubeconfig(
      { cn: `system:serviceaccount:${ownNamespace}:archwright-${part}` },
      cluster.server,
    );
  return {
    cluster,
    images,
    apply,
    /** Starts both, which read their Secrets with the rights of the chart. */
    start: async (settings: Settings, agents?: readonly Server[]) => {
      const all = { tls: noTls, ...(agents && { agents }) };
      const webhook = await startWebhook(cluster, {
        ...all,
        port,
        settings: {
          ...images.settings,
          ...settings,
          'inline-budget': '5s',
          kubeconfig: await accountOf('webhook'),
          listen: `${ownAddress}:${port}`,
        },
      });
      const controller = await startController(cluster, {
        ...all,
        tuning: shortLease,
        settings: {
          ...settings,
          kubeconfig: await accountOf('controller'),
          'webhook-configuration': 'archwright',
          'webhooks-file': webhooksFile,
        },
      });
      return { webhook: { ...webhook, url: `https://${ownAddress}:${port}` }, controller };
    },
  };
}
