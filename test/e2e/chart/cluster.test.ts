/** The chart and a real API server: strict validation, installing, upgrading, rolling back and leaving with both Helms. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { kubeconfigAccess } from '../../../src/kube/access.ts';
import { createKubeClient, type KubeClient } from '../../../src/kube/client.ts';
import type { KubeObject } from '../../../src/kube/objects.ts';
import { patience, startCluster, type Cluster } from '../cluster/harness.ts';
import { pathOf } from '../cluster/paths.ts';
import { waitFor } from '../cluster/watch.ts';
import { chart, helms, render, runHelm, type HelmName } from './helm.ts';
import { snapshot } from './snapshot.ts';

interface Rendered extends KubeObject {
  readonly spec?: { readonly template?: { readonly metadata: object; readonly spec: object } };
  readonly data?: Readonly<Record<string, string>>;
}

/** Kinds of programs that are not installed here. */
const foreign = /^(?:monitoring\.coreos\.com|cert-manager\.io|autoscaling\.k8s\.io)\//;

/** Everything that can be switched on. */
const everything = {
  certificates: 'builtin',
  failurePolicy: 'Fail',
  namespaceSelector: {
    matchLabels: { team: 'shop' },
    matchExpressions: [{ key: 'tier', operator: 'Exists' }],
  },
  objectSelector: { matchExpressions: [{ key: 'tier', operator: 'In', values: ['web'] }] },
  matchConditions: [{ name: 'not-batch', expression: "object.metadata.namespace != 'batch'" }],
  registryCredentials: {
    'ghcr.io': { existingSecret: 'a' },
    'registry.example.com:5000': { user: 'a', secret: 'b"\\' },
  },
  dockerConfigSecretName: 'login',
  kubeletConfig: { config: '/etc/plugins.yaml', binDir: '/opt/plugins' },
  serviceAccountTokens: true,
  flowSchema: { enabled: true },
  rbac: { pullSecrets: 'namespaces', pullSecretNamespaces: ['default'] },
  networkPolicy: { metricsFrom: [{ podSelector: {} }], egress: [{ ports: [{ port: 443 }] }] },
  monitoring: {
    mode: 'ServiceMonitor',
    rules: { enabled: true },
    dashboard: { enabled: true },
    scrapeAnnotations: true,
  },
  webhook: { autoscaling: { enabled: true }, verticalAutoscaling: { enabled: true }, hostNetwork: true },
  agent: {
    serviceAccountTokenAudiences: ['registry.example.com'],
    readKubeletEnvironment: true,
    stateHostPath: '/var/lib/archwright',
    pools: [
      {
        name: 'plain',
        nodeSelector: { pool: 'plain' },
        hostPaths: ['/etc/containerd', { path: '/etc/pki', type: 'Directory' }],
      },
      {
        name: 'cloud',
        nodeSelector: { pool: 'cloud' },
        config: { kubeletConfig: { config: '/etc/eks/c.json', binDir: '/etc/eks' } },
      },
    ],
  },
  extraObjects: [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'extra' } },
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-text\n',
  ],
};

function objectsOf(text: string): readonly Rendered[] {
  return parseAllDocuments(text, { version: '1.1' }).flatMap((document) => {
    const object = document.toJS() as Rendered | null;
    return object === null ? [] : [object];
  });
}

/** Applies in a dry run, refusing unknown and double fields. */
async function dryRun(client: KubeClient, object: Rendered): Promise<void> {
  const path = `${await pathOf(client, object)}/${object.metadata?.name ?? ''}`;
  await client.patch(
    path,
    { type: 'apply', body: object, fieldManager: 'e2e', force: true },
    { signal: patience(), query: { dryRun: 'All', fieldValidation: 'Strict' } },
  );
}

function helmIn(
  cluster: Cluster,
  helm: HelmName,
  ...args: readonly string[]
): { readonly code: number | null; readonly text: string } {
  const { code, out, err } = runHelm(helm, [...args, '--namespace', 'archwright'], {
    kubeconfig: cluster.kubeconfig,
  });
  return { code, text: out + err };
}

void t.test('the chart on a real API server', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } });
  t.teardown(() => cluster.stop());
  const { client } = cluster;
  await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

  await t.test('every object passes strict validation', async (t) => {
    // Pods of hooks are admitted only where their accounts are.
    for (const name of ['archwright-startup-check', 'archwright-clean']) {
      await cluster.create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace: 'archwright' },
      });
    }
    await client.create(priorityClasses, priorityClass, { signal: patience() });
    for (const values of [
      {},
      everything,
      { agent: { enabled: false } },
      { controller: { enabled: false } },
    ]) {
      for (const object of objectsOf(render('helm4', values))) {
        if (foreign.test(object.apiVersion ?? '')) continue;
        const what = `${object.kind} ${object.metadata?.name}`;
        await t.resolves(dryRun(client, object), what);
      }
    }
    for (const file of globSync('examples/helm/*.yaml')) {
      const values = parse(readFileSync(file, 'utf8')) as object;
      // Where its namespaces are.
      if (file.endsWith('careful.yaml')) {
        for (const name of ['shop', 'billing']) await cluster.createNamespace(name);
      }
      for (const object of objectsOf(render('helm4', values))) await t.resolves(dryRun(client, object), file);
    }
    for (const file of ['archwright.yaml', 'clean.yaml']) {
      for (const object of objectsOf(readFileSync(join('deploy', file), 'utf8')))
        await t.resolves(dryRun(client, object), file);
    }
    for (const name of ['archwright-startup-check', 'archwright-clean']) {
      await client.delete(`/api/v1/namespaces/archwright/serviceaccounts/${name}`, { signal: patience() });
    }
    await client.delete(`${priorityClasses}/archwright`, { signal: patience() });
  });

  await t.test('the webhooks that the controller applies are accepted, expressions and all', async (t) => {
    for (const values of [{}, everything]) {
      const map = objectsOf(render('helm4', values)).find(
        ({ kind, metadata }) => kind === 'ConfigMap' && metadata?.name === 'archwright',
      );
      await t.resolves(dryRun(client, withWebhooks(map?.data?.['webhooks.yaml'] ?? '')));
    }
  });

  await t.test('webhook, controller and Jobs pass Pod Security restricted; the agent does not', async (t) => {
    await cluster.createNamespace('restricted', { 'pod-security.kubernetes.io/enforce': 'restricted' });
    for (const account of ['webhook', 'controller', 'clean', 'startup-check', 'agent']) {
      await cluster.create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: `archwright-${account}`, namespace: 'restricted' },
      });
    }
    await client.create(priorityClasses, priorityClass, { signal: patience() });
    for (const object of objectsOf(render('helm4'))) {
      const template =
        object.kind === 'Pod' ? { metadata: {}, spec: object.spec as object } : object.spec?.template;
      if (!template?.spec || !('containers' in template.spec)) continue;
      const name = object.metadata?.name ?? '';
      const pod = {
        ...template,
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...template.metadata, name: `x-${name}`, namespace: 'restricted' },
      };
      if (name === 'archwright-agent') await t.rejects(dryRun(client, pod), /violates PodSecurity/);
      else await t.resolves(dryRun(client, pod), name);
    }
    await client.delete(`${priorityClasses}/archwright`, { signal: patience() });
    await client.delete('/api/v1/namespaces/restricted', { signal: patience() });
    await waitFor(client, '/api/v1/namespaces/restricted', (namespace) => namespace === undefined);
  });

  for (const helm of helms) {
    await t.test(`${helm}: install, upgrade, roll back, uninstall`, async (t) => {
      const before = await snapshot(client);
      const run = (...args: string[]): void => {
        const { code, text } = helmIn(cluster, helm, ...args);
        t.equal(code, 0, `${args.join(' ')}: ${text}`);
      };
      run('install', 'archwright', chart, '--wait', '--timeout', '3m');
      // What the controller does: it owns the webhooks, and they survive what Helm does.
      const map = await client.get<Rendered>('/api/v1/namespaces/archwright/configmaps/archwright', {
        signal: patience(),
      });
      const configuration = withWebhooks(map.data?.['webhooks.yaml'] ?? '');
      await client.patch(
        webhookPath,
        { type: 'apply', body: configuration, fieldManager: 'archwright-controller', force: true },
        { signal: patience() },
      );
      const webhooks = async (): Promise<number> =>
        (await client.get<{ readonly webhooks?: readonly unknown[] }>(webhookPath, { signal: patience() }))
          .webhooks?.length ?? 0;
      const count = await webhooks();
      t.equal(count, 4);
      run(
        'upgrade',
        'archwright',
        chart,
        '--wait',
        '--timeout',
        '3m',
        '--set',
        'webhook.replicas=3,commonAnnotations.a=b,preferredArchitecture=arm64',
      );
      t.equal(await webhooks(), count, 'an upgrade leaves the webhooks alone');
      const changed = await client.get<Rendered>('/api/v1/namespaces/archwright/configmaps/archwright', {
        signal: patience(),
      });
      t.match(changed.data?.['archwright.toml'], /preferredArchitecture = "arm64"/);
      run('rollback', 'archwright', '1', '--wait', '--timeout', '3m');
      t.equal(await webhooks(), count, 'so does a rollback');
      run('uninstall', 'archwright', '--wait', '--timeout', '3m');
      await waitFor<KubeObject>(
        client,
        '/api/v1/namespaces/archwright/services/archwright-webhook',
        (service) => service === undefined,
      );
      t.same(await settled(client, before), before, 'everything is as it was');
    });
  }

  await t.test('others may not write our annotation or take our gate away', async (t) => {
    t.equal(helmIn(cluster, 'helm4', 'install', 'archwright', chart, '--no-hooks').code, 0);
    const dev = await somebody(cluster, 'dev', 'edit');
    const administrator = await somebody(cluster, 'administrator', 'cluster-admin');
    t.teardown(() => {
      dev.close();
      administrator.close();
    });
    const metadata = { name: 'web', annotations: { 'arch.example/decision': '{"v":1}' } };
    await cluster.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: {
        schedulingGates: [{ name: 'arch.example/scheduling-gate' }],
        containers: [{ name: 'app', image: 'registry.example/app:1' }],
      },
    });
    const path = '/api/v1/namespaces/default/pods/web';
    const patch = (who: KubeClient, body: object): Promise<unknown> =>
      who.patch(path, { type: 'merge', body }, { signal: patience() });
    const forge = (version: number): object => ({
      metadata: { annotations: { 'arch.example/decision': `{"v":${version}}` } },
    });
    const open = { spec: { schedulingGates: [] } };
    // Policies are in force a moment after they were created.
    await t.rejects(
      untilRefused((tries) => patch(dev, forge(tries + 2))),
      /written by archwright only/,
    );
    await t.rejects(patch(dev, { metadata: { annotations: null } }), /written by archwright only/);
    await t.rejects(patch(dev, open), /taken away by archwright only/);
    await t.resolves(patch(administrator, forge(100)), 'who could take the policy away need not');
    await t.resolves(patch(dev, { metadata: { labels: { a: 'b' } } }), 'anything else is theirs');
    await t.resolves(patch(client, open), 'the way out for an administrator');
    t.equal(helmIn(cluster, 'helm4', 'uninstall', 'archwright', '--no-hooks').code, 0);
  });
});

/** Pods of ours are admitted only where it is; its value can never be changed. */
const priorityClasses = '/apis/scheduling.k8s.io/v1/priorityclasses';
const priorityClass = { metadata: { name: 'archwright' }, value: 900_000_000 };

const webhookPath = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';

function withWebhooks(text: string): Rendered {
  const { webhooks } = parse(text, { version: '1.1' }) as { readonly webhooks: readonly object[] };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'archwright' },
    webhooks,
  } as Rendered;
}

/** Somebody with a role in the whole cluster, and in no group that is exempt. */
async function somebody(cluster: Cluster, name: string, role: 'edit' | 'cluster-admin'): Promise<KubeClient> {
  await cluster.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', name }],
  });
  const kubeconfig = await cluster.identities.kubeconfig({ cn: name, group: 'devs' }, cluster.server);
  const access = await kubeconfigAccess({ path: kubeconfig });
  if (!access) throw new TypeError('no access by a kubeconfig that was just written');
  return createKubeClient({ access, userAgent: 'archwright-e2e' });
}

/** Pods and endpoints go a moment after what they belong to. */
async function settled(client: KubeClient, wanted: readonly string[]): Promise<readonly string[]> {
  for (let tries = 0; ; tries++) {
    const found = await snapshot(client);
    if (tries === 20 || JSON.stringify(found) === JSON.stringify(wanted)) return found;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** @throws what refused it at last */
async function untilRefused(change: (tries: number) => Promise<unknown>): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    await change(tries);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
