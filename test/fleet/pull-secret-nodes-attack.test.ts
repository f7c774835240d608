/**
 * A rogue agent outside of `pullSecretNodes` receives no pull secret; agents, API server and TLS are real
 * servers.
 */
import t, { type Test } from 'tap';
import { openFleet } from '../../cmd/wiring/fleet.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { startKubeStore } from '../support/kube-store.ts';
import { pullCredential, requestFor } from '../support/facts.ts';
import { createPki, type FactsRequest, startScripted } from './support.ts';
import { until } from '../support/until.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { silentLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

const credentials = [{ ...pullCredential('ann'), key: 'registry.example/team' }];
const addresses = '/apis/discovery.k8s.io/v1/namespaces/archwright/endpointslices';

/** One agent on each of these nodes. */
async function start(t: Test, nodes: Readonly<Record<string, Readonly<Record<string, string>> | undefined>>) {
  const store = await startKubeStore();
  t.teardown(() => store.close());
  const pki = await createPki(t);
  const agents = await Promise.all(
    Object.entries(nodes).map(async ([node, labels]) => {
      const agent = await startScripted(t, pki, { node: 'trusted-1', fingerprint: node });
      if (labels) store.put(`/api/v1/nodes/${node}`, { metadata: { labels } });
      store.put(`${addresses}/${node}`, {
        metadata: { labels: { 'kubernetes.io/service-name': 'agents' } },
        addressType: 'IPv4',
        ports: [{ name: 'api', port: agent.port }],
        endpoints: [{ addresses: ['127.0.0.1'], nodeName: node, conditions: { ready: true } }],
      });
      return { node, agent };
    }),
  );
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  t.teardown(() => client.close());
  const open = await openFleet({
    agents: ['endpointslices:archwright/agents'],
    agentTlsDir: pki.clientDir,
    certificates: 'external',
    client,
    pullSecretNodes: 'pool=trusted',
    log: silentLog,
    metrics: createMetrics(),
  });
  if (!open) throw new Error('no fleet');
  t.teardown(() => open.close());
  await open.fleet.grouped(neverAborted);
  return {
    store,
    lookup: (text: string, secrets = credentials) =>
      open.fleet.lookup({ ...requestFor(text), pullCredentials: secrets }, { signal: neverAborted }),
    /** Nodes whose agents got such a request. */
    nodesWith: (wanted: (request: FactsRequest) => boolean) =>
      agents.filter(({ agent }) => agent.requests.some(wanted)).map(({ node }) => node),
  };
}

const images = Array.from({ length: 20 }, (_, index) => `registry.example/team/app-${index}:1`);

t.test('pull secrets go only to agents on matching nodes, whatever names agents report', async (t) => {
  const { lookup, nodesWith, store } = await start(t, {
    'rogue-1': { pool: 'other' },
    'rogue-2': {},
    unknown: undefined,
    'trusted-2': {},
  });
  const refused = { code: 'forbidden', message: /matches pullSecretNodes \(pool=trusted\)/ };
  like(t, await lookup(images[0] ?? ''), { image: images[0], error: refused });
  t.strictSame(
    nodesWith(() => true),
    [],
  );
  store.put('/api/v1/nodes/trusted-2', { metadata: { labels: { pool: 'trusted' } } });
  await until(async () => (await lookup(images[0] ?? '')).error === undefined);
  for (const text of images) t.notOk((await lookup(text)).error);
  for (const text of images) await lookup(text, []);
  t.equal(nodesWith(() => true).length, 4, 'without secrets, requests go to all agents');
  t.strictSame(
    nodesWith(({ auths }) => auths !== undefined),
    ['trusted-2'],
  );
});
