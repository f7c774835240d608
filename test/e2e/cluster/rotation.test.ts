/**
 * Rotation under load, on a real API server: webhook and agent are child processes with the controller's
 * Secrets, which arrive late, as by a kubelet. Certificates last seconds and leaders change. With
 * `failurePolicy: Fail` no pod and no agent request fails. The controller has exactly the documented rights.
 */
import { lead as runFeature } from '../../controller/leader.ts';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { readAuthorities } from '../../../src/certificates/authorities.ts';
import { certificatesWith } from '../../../src/controller/features/certificates/certificates.ts';
import { readLeaf } from '../../../src/controller/features/certificates/leaves.ts';
import type { LeaderContext } from '../../../src/controller/lead/leader-context.ts';
import type { WebhookConfiguration } from '../../../src/controller/state/ca-bundle.ts';
import { liveWebhooks } from '../../../src/controller/state/webhooks-file.ts';
import { webhookConfiguration } from '../../../src/controller/features/webhook-configuration/webhook-configuration.ts';
import { openConnection, type AgentConnection } from '../../../src/fleet/connection.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import {
  ownNamespace,
  startAgent,
  startWebhook,
  tryPod,
  type Server,
  type TlsDirs,
} from './archwright/archwright.ts';
import { clientOf, patience, startCluster, type Cluster } from './harness.ts';
import { mount, secretTexts, writeWebhooksFile } from './archwright/issued.ts';
import { freePort } from './control-plane/ports.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { silentLog } from '../../support/captured.ts';

/** The shortest that delays of Secrets and files allow on a busy machine: a third of a lifetime is 12 s. */
const times = { certificateMs: 36_000, caMs: 68_000, settleMs: 4000 };
/** Delay of a changed Secret; the files are read within another second. */
const lagMs = 2000;
const leaderMs = 12_000;
const name = 'archwright';

const rbac = { apiGroup: 'rbac.authorization.k8s.io' };
const user = 'archwright-controller';
const secretNames = ['ca', 'webhook-tls', 'agent-tls', 'webhook-client-tls', 'controller-client-tls'];
const rights = {
  Role: {
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: secretNames.map((each) => `archwright-${each}`),
    verbs: ['get', 'list', 'watch', 'create', 'patch'],
  },
  ClusterRole: {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['mutatingwebhookconfigurations'],
    resourceNames: [name],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
};

/** Exactly the documented rights of the controller, and a configuration without webhooks. */
async function grant(cluster: Cluster): Promise<void> {
  for (const kind of ['Role', 'ClusterRole'] as const) {
    const role = kind === 'Role' ? `${ownNamespace}/${user}` : user;
    await cluster.make(kind, role, { rules: [rights[kind]] });
    const roleRef = { ...rbac, kind, name: user };
    await cluster.make(`${kind}Binding`, role, {
      roleRef,
      subjects: [{ ...rbac, kind: 'User', name: user }],
    });
  }
  await cluster.make('MutatingWebhookConfiguration', name);
}

/** One leader after the other, until the signal aborts. */
async function lead(
  cluster: Cluster,
  webhooksFile: string,
  signal: AbortSignal,
  lines: string[],
): Promise<void> {
  const kubeconfig = await cluster.identities.kubeconfig({ cn: user }, cluster.server);
  const configuration = {
    ...defaultConfiguration(),
    namespace: ownNamespace,
    webhookConfiguration: name,
    webhooksFile,
  };
  const log = createLog({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  while (!signal.aborted) {
    const client = await clientOf(kubeconfig, user);
    const webhooks = await liveWebhooks(webhooksFile, log);
    const leading = {
      namespace: ownNamespace,
      signal: AbortSignal.any([signal, AbortSignal.timeout(leaderMs)]),
      client,
      configuration: () => configuration,
      clock: systemClock,
      serverNow: () => client.serverNow(),
      log,
      webhooks,
      metrics: createMetrics(),
    } as Partial<LeaderContext> as LeaderContext;
    await Promise.all([
      runFeature(certificatesWith(times), leading),
      runFeature(webhookConfiguration, leading),
    ]);
    client.close();
    await webhooks.close();
  }
}

void t.test('no admission fails during a rotation under load', async (t) => {
  const cluster = await startCluster({}, t);
  await cluster.createNamespace(ownNamespace);
  await grant(cluster);
  const port = await freePort();
  const webhooksFile = await writeWebhooksFile(cluster, `https://127.0.0.1:${port}`);
  const lines: string[] = [];
  const ending = new AbortController();
  const led = lead(cluster, webhooksFile, ending.signal, lines);

  const configured = paths.mutatingWebhookConfigurations(name);
  const tls = {
    webhook: await mount(t, cluster, 'archwright-webhook-tls', lagMs),
  } as Partial<TlsDirs> as TlsDirs;
  // Nothing is in force until the webhook answers.
  await pause(2000);
  t.same((await cluster.get<{ webhooks?: unknown }>(configured)).webhooks, undefined);
  await startWebhook(cluster, { tls, port });
  await cluster.waitFor<WebhookConfiguration>(configured, (now) => now?.webhooks !== undefined);

  // Secrets arrive early and late, in each combination of client and server.
  const agents: Server[] = [];
  const connections: AgentConnection[] = [];
  for (const ms of [0, lagMs]) {
    const agent = await mount(t, cluster, 'archwright-agent-tls', ms);
    agents.push(await startAgent(cluster, { tls: { ...tls, agent }, name: `agent-${ms}` }));
    const tlsDir = await mount(t, cluster, 'archwright-controller-client-tls', ms);
    const connection = await openConnection({ dir: tlsDir, log: silentLog });
    t.teardown(() => connection.close());
    connections.push(connection);
  }
  const refused: string[] = [];
  const counts = { pods: 0, requests: 0 };
  const noteRefusal = (error: unknown): void => {
    if (!ending.signal.aborted) refused.push(error instanceof Error ? error.message : String(error));
  };
  const pods = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const one = (): Promise<unknown> => tryPod(cluster).then(() => (counts.pods += 1), noteRefusal);
      // More at once than the API server keeps connections for: some begin with a handshake.
      await Promise.all(Array.from({ length: 12 }, one));
      await pause(100);
    }
  };
  const requests = async (connection: AgentConnection, agent: Server): Promise<void> => {
    while (!ending.signal.aborted) {
      const call = { signal: patience(), maxBytes: 100_000 };
      await connection.json(agent.url, '/v1/info', call).then(() => (counts.requests += 1), noteRefusal);
      await pause(50);
    }
  };
  const load = [pods(), ...connections.flatMap((each) => agents.map((agent) => requests(each, agent)))];

  // An edit of archwright's configuration in the middle of it.
  await pause(3000);
  await cluster.patch(configured, {
    type: 'json',
    body: [{ op: 'remove', path: '/webhooks/0/namespaceSelector' }],
  });
  const edited = await cluster.waitFor<WebhookConfiguration>(configured, (now) =>
    Object.hasOwn(now?.webhooks?.[0]?.['namespaceSelector'] ?? {}, 'matchExpressions'),
  );
  t.match(edited, { webhooks: [{ failurePolicy: 'Fail' }] }, 'the edit is reverted');

  const authorities = new Set<string>();
  const leaves = new Set<string>();
  const until = performance.now() + 180_000;
  for (;;) {
    const found = readAuthorities(await secretTexts(cluster, 'archwright-ca'));
    if (found.newest) authorities.add(found.newest.certificate.id);
    const { certificate } = readLeaf(await secretTexts(cluster, 'archwright-webhook-tls'));
    if (certificate) leaves.add(certificate.id);
    const isDone = authorities.size >= 3 && found.previous.length === 0;
    if (isDone || performance.now() > until) break;
    await pause(200);
  }
  ending.abort(new Error('enough'));
  await Promise.all([...load, led]);
  const seen = `${authorities.size} authorities, ${leaves.size} certificates of the webhook`;
  t.comment(`${counts.pods} pods, ${counts.requests} requests, ${seen}`);
  t.same(refused.slice(0, 5), [], `${refused.length} refused`);
  t.ok(authorities.size >= 3, 'two authorities were replaced');
  t.ok(leaves.size >= 4);
  t.ok(counts.pods > 500);
  t.ok(counts.requests > 500);
  const errors = lines.filter((line) => line.includes('"level":"error"'));
  t.same(errors, []);
  t.notMatch(lines.join(''), 'PRIVATE KEY');
});
