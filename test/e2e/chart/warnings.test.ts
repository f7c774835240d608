/** Warnings of the chart's webhooks: the API server sends them as headers, and kubectl prints them. */
import t from 'tap';
import { systemClock } from '../../../src/async/clock.ts';
import { kubeconfigAccess } from '../../../src/kube/api/access.ts';
import { Transport } from '../../../src/kube/api/transport.ts';
import { prepareArchwright, startAgent, startWebhook } from '../cluster/archwright/archwright.ts';
import { patience, startCluster, type Cluster } from '../cluster/harness.ts';
import { startImages } from '../cluster/archwright/images.ts';
import { podOf, workload } from '../cluster/control-plane/pods.ts';
import { callWebhook } from './rendered.ts';

void t.test('users get admission warnings', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const agent = await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } });
  const settings = { 'inline-budget': '5s' };
  const { url } = await startWebhook(cluster, { tls, agents: [agent], settings });
  const both = images.push('both', ['amd64', 'arm64']);
  const intel = images.push('intel', ['amd64']);
  await callWebhook(cluster, { url, ca: tls.webhookCa }, both);

  const onArm = { nodeName: 'arm64-0' };
  const pinned = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['arm64-0'] }] }],
      },
    },
  };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'u', controller: true };
  const deployment = (name: string, image: string, more: object): object =>
    workload('Deployment', name, { image }, { replicas: 0, ...more });
  const rows: [what: string, object: object, warning?: RegExp][] = [
    [
      'a misspelled preference of a template',
      deployment('misspelled', both, { labels: { 'arch.example/preferred': 'aarch64' } }),
      /unknown architecture aarch64; did you mean arm64\?/,
    ],
    [
      'a node selector of a template',
      deployment('selector', intel, { pod: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } }),
      /the pod allows arm64, but its images can only run on amd64/,
    ],
    ['a template without a problem', deployment('fine', both, {})],
    ['a pod that names a wrong node', podOf('named', intel, onArm), /intel:1 cannot run here: it has amd64/],
    ['a pod that names a node that it can run on', podOf('right', both, onArm)],
    ['a pod with a controller', podOf('owned', intel, onArm, { ownerReferences: [owner] })],
    [
      'a pod that pins a wrong node',
      podOf('pinned', intel, { affinity: pinned }),
      /the pod chooses node arm64-0 \(arm64\), but its images can only run on amd64/,
    ],
  ];
  const create = await creating(cluster);
  t.teardown(() => create.close());
  for (const [what, object, warning] of rows) {
    const { status, warnings } = await create.one(object);
    t.equal(status, 201, what);
    t.equal(warnings.length, warning ? 1 : 0, what);
    if (warning) t.match(warnings[0], warning, what);
  }
});

/** Creates objects and reads the warnings in the responses. */
async function creating(cluster: Cluster) {
  const access = await kubeconfigAccess({ path: cluster.kubeconfig });
  if (access === undefined) throw new TypeError('the kubeconfig gives no access');
  const transport = new Transport({ access, userAgent: 'e2e', timeoutMs: 10_000, clock: systemClock });
  const one = async (object: object) => {
    const path = await cluster.pathOf(object);
    const response = await transport.open({ method: 'POST', path, body: JSON.stringify(object) }, patience());
    const warnings = response.headers['warning'] ?? [];
    response.close();
    return { status: response.status, warnings };
  };
  return { one, close: () => transport.close() };
}
