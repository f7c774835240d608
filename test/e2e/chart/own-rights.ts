/**
 * The rights of archwright's service accounts, as the chart grants and limits them: what a stolen token of
 * the controller cannot do, and what the controller still can.
 */
import type { Test } from 'tap';
import { stringify } from 'yaml';
import type { CallOptions, KubeClient } from '../../../src/kube/api/client.ts';
import { ignoring, KubeError } from '../../../src/kube/api/errors.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { tokenOf } from '../cluster/archwright/accounts.ts';
import { define } from '../cluster/control-plane/definitions.ts';
import { untilChartGranted, untilRefused } from '../cluster/control-plane/rights.ts';
import { clientOf, patience, type Cluster } from '../cluster/harness.ts';
import { openReportsDefinitions } from '../programs/definitions.ts';
import { createHelm } from '../helm/release.ts';
import {
  account,
  dedicated,
  get,
  merge,
  otherAudience,
  refusedByPolicies,
  node,
  pod,
  webhooks,
  controllerWrites,
} from './escalations.ts';
import { maxAgentRequests } from '../../../src/certificates/agent-names.ts';
import { agentRequest, allowedChanges, examples, storesNothing } from './allowed-changes.ts';
import { acceptedChanges, grantsOf, objectPath } from './generated-changes.ts';
import { chart, render } from './helm.ts';
import { applyWebhooks, objectsOf, withWebhooks, type WebhookOfChart } from './rendered.ts';

export async function checkOwnRights(t: Test, cluster: Cluster): Promise<void> {
  const helm = createHelm('helm4', cluster);
  const values = {
    rbac: { pullSecrets: 'namespaces', pullSecretNamespaces: ['default'] },
    report: { enabled: true },
    rollouts: true,
    serviceAccountTokens: true,
    agent: { serviceAccountTokenAudiences: ['registry.example'] },
    clean: { extraArgs: ['--restart-pods'] },
  };
  await helm.run('install archwright', chart, '--no-hooks', helm.values('own-rights.json', values));
  const ofHooks = objectsOf(
    render(
      'helm4',
      values,
      ['hooks/clean', 'hooks/startup-check', 'tests/installation'].map(
        (name) => `--show-only=templates/${name}.yaml`,
      ),
    ),
  ).filter(({ kind = '' }) => /^(?:ServiceAccount|(?:Cluster)?Role(?:Binding)?)$/.test(kind));
  await cluster.applyYaml(ofHooks.map((object) => stringify(object)).join('---\n'));
  await createVictims(cluster);
  const token = await tokenOf(cluster, 'archwright-controller', undefined, [otherAudience]);
  const controller = await clientOf(token);
  t.teardown(() => controller.close());

  await untilChartGranted(cluster.client);
  await untilEnforced(controller);
  await checkEveryField(t, cluster);
  for (const [name, call] of refusedByPolicies) await refused(t, name, () => call(controller));
  await t.rejects(
    merge(pod, { metadata: { annotations: { 'x.example/marked': 'yes' } } })(controller),
    /ValidatingAdmissionPolicy 'archwright-own-pods' .*denied request: archwright only changes its own annotations/,
    'as another webhook may change what it updates',
  );
  for (const [name, call] of controllerWrites) await t.resolves(call(controller), name);
  await checkWebhooks(t, cluster, controller);

  await cluster.make('ClusterRoleBinding', 'by-mistake', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'archwright-controller', namespace: 'archwright' }],
  });
  await t.resolves(get('/api/v1/secrets')(controller), 'every right is granted');
  for (const [name, call] of refusedByPolicies)
    await refused(t, `with cluster-admin, ${name}`, () => call(controller));
  await cluster.delete('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/by-mistake');
  await cluster.delete('/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster');
  await helm.run('uninstall archwright --no-hooks');
  for (const object of ofHooks) await cluster.delete(await objectPath(cluster, object));
  await cluster.delete(pod);
  await cluster.delete(node);
}

/** Objects to attack: another program's gated pod, a node, and a custom resource. */
async function createVictims(cluster: Cluster): Promise<void> {
  await cluster.make('Pod', 'gated', {
    metadata: { annotations: { 'x.example/kept': 'yes' } },
    spec: {
      schedulingGates: [{ name: 'arch.example/scheduling-gate' }, { name: 'x.example/theirs' }],
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      initContainers: [{ name: 'i', image: 'registry.example/init:1' }],
      containers: [{ name: 'c', image: 'registry.example/app:1' }],
    },
  });
  await cluster.make('Node', 'worker', {
    metadata: { labels: { 'kubernetes.io/arch': 'amd64' }, annotations: { 'x.example/kept': 'yes' } },
    spec: { taints: [dedicated] },
  });
  await cluster.make('ClusterPodPlacementConfig', 'cluster', { spec: { fallbackArchitecture: 'amd64' } });
}

/** The webhooks of the chart may only get the authority, the path, and what narrows them. */
async function checkWebhooks(t: Test, cluster: Cluster, controller: KubeClient): Promise<void> {
  const { webhooks: rendered } = withWebhooks(
    await cluster.get(paths.configMaps('archwright', 'archwright')),
  );
  const write = (change: (webhook: WebhookOfChart) => object): Promise<unknown> =>
    merge(webhooks, { webhooks: rendered.map((each) => ({ ...each, ...change(each) })) })(controller);
  const attacks: Readonly<Record<string, (webhook: WebhookOfChart) => object>> = {
    'every pod refused': () => ({ failurePolicy: 'Fail' }),
    'every pod delayed': () => ({ timeoutSeconds: 30 }),
    'every namespace': () => ({ namespaceSelector: {} }),
    'pods that opted out': () => ({ objectSelector: {} }),
    'no conditions': () => ({ matchConditions: [] }),
    'another webhook': ({ name }) => ({ name: `x.${name}` }),
    secrets: ({ rules }) => ({ rules: [{ ...rules[0], resources: ['secrets'] }] }),
    'another port': ({ clientConfig: { service } }) => ({
      clientConfig: { service: { ...service, port: 444 } },
    }),
  };
  for (const [name, change] of Object.entries(attacks)) await refused(t, name, () => write(change));
  const caBundle = base64(cluster.identities.ca.cert);
  const narrowed = ({
    clientConfig: { service },
    namespaceSelector: { matchExpressions },
  }: WebhookOfChart) => ({
    clientConfig: { service: { ...service, path: '/mutate/x' }, caBundle },
    // As AKS does.
    namespaceSelector: { matchExpressions: [...matchExpressions, { key: 'x', operator: 'DoesNotExist' }] },
  });
  await t.resolves(write(narrowed), 'authority, path, and a narrower selector');
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Every node tries at once to take all names of one node. @param agent of that node */
async function checkSquatting(t: Test, cluster: Cluster, agent: KubeClient): Promise<void> {
  const requests = paths.certificateSigningRequests();
  const taken = await Promise.all(
    ['a', 'b', 'c', 'd'].map(async (name) => {
      const identity = { cn: `system:node:${name}`, group: 'system:nodes' };
      const kubelet = await clientOf(await cluster.identities.kubeconfig(identity, cluster.server));
      t.teardown(() => kubelet.close());
      const tries = Array.from({ length: maxAgentRequests }, (_, slot) =>
        kubelet.create(requests, agentRequest(slot), { signal: patience() }).then(
          () => 'taken',
          (error: unknown) => (error instanceof KubeError ? error.message : String(error)),
        ),
      );
      return Promise.all(tries);
    }),
  );
  const refusal = /only archwright's agents request certificates of arch\.example\/agent/;
  t.strictSame(
    taken.flat().filter((answer) => !refusal.test(answer)),
    [],
    'no kubelet gets a name',
  );
  await t.resolves(agent.create(requests, agentRequest(3), { signal: patience() }), 'the agent does');
}

/** Each field of each object that a token of archwright may write: what is not on the short list is refused. */
async function checkEveryField(t: Test, cluster: Cluster): Promise<void> {
  await applyWebhooks(cluster);
  for (const text of openReportsDefinitions()) await define(cluster, text);
  const containers = [{ name: 'agent', image: 'agent:1' }];
  const spec = { nodeName: 'worker', serviceAccountName: 'archwright-agent', containers };
  const agentPod = await cluster.make('Pod', 'archwright/agent-on-worker', { spec });
  const agent = await clientOf(await tokenOf(cluster, 'archwright-agent', agentPod));
  t.teardown(() => agent.close());
  const marks = { 'x.example/kept': 'yes' };
  const metadata = { labels: marks, annotations: marks, finalizers: ['x.example/stays'] };
  const accepted: string[] = [];
  const clients = new Map<string, KubeClient>();
  for (const account of Object.keys(examples)) {
    const who = account === 'archwright-agent' ? agent : await clientOf(await tokenOf(cluster, account));
    t.teardown(() => who.close());
    clients.set(account, who);
  }
  const attempt = async (verbs: readonly string[]): Promise<void> => {
    for (const [account, who] of clients)
      for (const grant of await grantsOf(cluster, account))
        if (verbs.includes(grant.verb) && !storesNothing.includes(grant.resource)) {
          const example = examples[account]?.[grant.resource] ?? {};
          accepted.push(...(await acceptedChanges(cluster, who, grant, example)));
        }
  };
  await attempt(['create']);
  // Paths of objects with a finalizer. While one is left, the API server cannot delete its definition.
  const held: string[] = [];
  for (const { stored } of Object.values(examples).flatMap((ofAccount) => Object.values(ofAccount))) {
    if (typeof stored !== 'object') continue;
    const path = await objectPath(cluster, stored);
    if (await ignoring('not-found', cluster.get(path))) continue;
    const creator = path.includes('certificatesigningrequests') ? agent : cluster.client;
    await creator.create(path.slice(0, path.lastIndexOf('/')), stored, { signal: patience() });
    await cluster.merge(path, { metadata });
    held.push(path);
  }
  await attempt(['patch', 'update']);
  const { created: checked } = examples['archwright-startup-check']?.['pods'] ?? {};
  for (const account of ['archwright-startup-check', 'archwright-test'])
    await refused(t, `a pod of ${account}, not in a dry run`, () =>
      (clients.get(account) ?? agent).create(paths.pods('default'), checked ?? {}, { signal: patience() }),
    );
  await t.resolves(
    merge('/apis/apps/v1/namespaces/default/deployments/web', {
      spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } } } },
    })(clients.get('archwright-clean') ?? agent),
    'clean restarts a workload',
  );
  for (const path of held) await cluster.merge(path, { metadata: { finalizers: null } });
  await checkSquatting(t, cluster, agent);
  for (const [audience, isAllowed] of [
    [otherAudience, false],
    ['registry.example', true],
  ] as const)
    await t[isAllowed ? 'resolves' : 'rejects'](
      agent.create(`${account}/token`, { spec: { audiences: [audience] } }, { signal: patience() }),
      `a token for ${audience}`,
    );
  const isAllowed = (change: string): boolean => allowedChanges.some(([allowed]) => allowed.test(change));
  t.strictSame(
    accepted.filter((change) => !isAllowed(change)),
    [],
    'every other change is refused',
  );
  t.ok(accepted.length > 50, 'changes are tried');
}

/** Policies are enforced a moment after they are created. Dry runs show when each of them is. */
async function untilEnforced(controller: KubeClient): Promise<void> {
  const dryRun = (): CallOptions => ({ signal: patience(), query: { dryRun: 'All' } });
  const body = { metadata: { annotations: { 'x.example/y': 'z' } } };
  const foreign = {
    name: 'pods.arch.example',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { url: 'https://evil.example/' },
  };
  const metadata = { name: 'archwright-drift', namespace: 'archwright' };
  const drift = { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true };
  const apply = { type: 'apply', body: drift, fieldManager: 'test' } as const;
  for (const attempt of [
    () => controller.patch(pod, { type: 'merge', body }, dryRun()),
    () => controller.patch(node, { type: 'merge', body }, dryRun()),
    () => controller.patch(webhooks, { type: 'merge', body: { webhooks: [foreign] } }, dryRun()),
    () => controller.patch('/api/v1/namespaces/archwright/configmaps/archwright-drift', apply, dryRun()),
  ])
    await untilRefused(attempt).catch((error: unknown) => {
      if (!(error instanceof KubeError && error.message.includes('ValidatingAdmissionPolicy'))) throw error;
    });
}

async function refused(t: Test, name: string, call: () => Promise<unknown>): Promise<void> {
  const answer = await call().then(
    () => 'accepted',
    (error: unknown) => (error instanceof KubeError ? `${error.code}: ${error.message}` : String(error)),
  );
  // `invalid`: the field is immutable.
  t.match(answer, /^(forbidden|invalid): /u, `${name} is refused`);
}
