/** Each example values file on a real control plane: its comment is true, and removal leaves nothing. */
import { define, deleteKeptDefinitions } from '../cluster/control-plane/definitions.ts';
import { globSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { parseAllDocuments } from 'yaml';
import type { KubeObject, Pod } from '../../../src/kube/api/objects.ts';
import { startCluster, type Cluster } from '../cluster/harness.ts';
import { takesPods, type FakeNode, type NodeObject } from '../cluster/control-plane/nodes.ts';
import { differencesFrom, steadyListing } from '../cluster/control-plane/listing.ts';
import { runningPod } from '../cluster/control-plane/pods.ts';
import { createHelm } from '../helm/release.ts';
import { chart } from './helm.ts';
import { constraintsDefinition } from './strict.ts';
import { withWebhooks, type Rendered } from './rendered.ts';

interface OwnPod extends KubeObject {
  readonly spec: Omit<Pod['spec'], 'volumes'> & {
    readonly volumes?: readonly Volume[];
    readonly securityContext?: object;
  };
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly hostPath?: { readonly path: string };
  readonly projected?: {
    readonly sources: readonly {
      readonly secret?: { readonly name: string; readonly items?: readonly { readonly key: string }[] };
    }[];
  };
}

interface Example {
  readonly before?: (cluster: Cluster) => Promise<void>;
  readonly check: (t: Test, cluster: Cluster, agents: ReadonlyMap<string, OwnPod>) => Promise<void>;
}

const ownPods = '/api/v1/namespaces/archwright/pods';
const edge: FakeNode = {
  name: 'edge-0',
  architecture: 'arm64',
  labels: { 'node-role.example.com/edge': 'true' },
};
/** Nodes that the examples distinguish. kwok simulates all of them. */
const ownNodes = ['amd64-0', 'arm64-0', edge.name];
const fakeNodes = parseAllDocuments(readFileSync('examples/kind/fake-nodes.yaml', 'utf8')).map(
  (document) => document.toJS() as NodeObject,
);
const allNodes = [...ownNodes, ...fakeNodes.map(({ metadata }) => metadata?.name ?? '')].sort();

const examples: Readonly<Record<string, Example>> = {
  'examples/helm/careful.yaml': {
    before: async (cluster) => {
      for (const name of ['shop', 'billing']) await cluster.createNamespace(name);
    },
    check: async (t, cluster, agents) => {
      const [webhook] = withWebhooks(await configMap(cluster, 'archwright')).webhooks;
      t.match(webhook, { namespaceSelector: { matchLabels: { 'arch.example/enabled': 'true' } } });
      for (const account of ['webhook', 'controller']) {
        const user = `system:serviceaccount:archwright:archwright-${account}`;
        const may = (namespace: string, verb: string, resource: string): Promise<boolean> =>
          isAllowed(cluster, user, { namespace, verb, resource });
        for (const namespace of ['shop', 'billing']) t.ok(await may(namespace, 'get', 'secrets'), account);
        t.notOk(await may('default', 'get', 'secrets'), `${account}: pull secrets of two namespaces`);
        t.notOk(await may('shop', 'create', 'pods/eviction'), `${account}: nothing evicted`);
      }
      const volumes = [...agents.values()].flatMap(({ spec }) => spec.volumes ?? []);
      t.notOk(
        volumes.some(({ hostPath }) => hostPath !== undefined),
        'no files of the nodes',
      );
    },
  },
  'examples/helm/node-pools.yaml': {
    check: async (t, cluster, agents) => {
      t.same([...agents.keys()].sort(), allNodes, 'one on each node');
      for (const [node, { metadata, spec }] of agents) {
        const pool = node === edge.name ? 'edge' : 'cloud';
        t.match(metadata?.name, new RegExp(`^archwright-agent-${pool}-`), node);
        const paths = spec.volumes?.flatMap(({ hostPath }) => hostPath?.path ?? []);
        const containerd = '/var/lib/rancher/k3s/agent/etc/containerd';
        t.equal(paths?.includes(containerd), pool === 'edge', `${node}: configuration of k3s`);
        const map = spec.volumes?.find(({ name }) => name === 'config')?.configMap?.name;
        const { data } = await configMap(cluster, map ?? '');
        t.equal(data?.['archwright.toml']?.includes(`${containerd}/config.toml`), pool === 'edge', node);
      }
    },
  },
  'examples/helm/private-registries.yaml': {
    before: async (cluster) => {
      // Created by the command in the file's comment.
      const comment = readFileSync('examples/helm/private-registries.yaml', 'utf8');
      const [, namespace, name, key, text] =
        /kubectl -n (\S+) create secret generic (\S+) --from-literal=([^=]+)=\$'(.*)'$/m.exec(comment) ?? [];
      t.ok(namespace !== undefined && name !== undefined && key !== undefined && text !== undefined);
      await cluster.make('Secret', `${namespace}/${name}`, {
        stringData: { [key ?? '']: text?.replaceAll(String.raw`\n`, '\n') },
      });
    },
    check: async (t, cluster, agents) => {
      t.same([...agents.keys()].sort(), allNodes);
      for (const { spec } of agents.values()) {
        const projected = spec.volumes?.flatMap(({ projected }) => projected?.sources ?? []) ?? [];
        const secrets = projected.flatMap(({ secret }) => secret ?? []);
        t.equal(secrets.length, 1);
        for (const { name, items } of secrets) {
          const path = `/api/v1/namespaces/archwright/secrets/${name}`;
          const { data } = await cluster.get<Rendered>(path);
          for (const { key } of items ?? []) t.ok(data?.[key], `the Secret ${name} has ${key}`);
        }
      }
      const toml = (await configMap(cluster, 'archwright')).data?.['archwright.toml'];
      t.match(toml, /proxies = \["docker\.io=docker-proxy\.company\.corp"\]/);
      t.match(toml, /preferredArchitecture = "arm64"/);
    },
  },
  'examples/helm/openshift.yaml': {
    before: (cluster) => define(cluster, constraintsDefinition),
    check: async (t, cluster, agents) => {
      for (const { metadata, spec } of await cluster.list<OwnPod>(ownPods)) {
        if (metadata?.labels?.['app.kubernetes.io/component'] === 'agent') continue;
        for (const field of ['runAsUser', 'runAsGroup', 'fsGroup'])
          t.notOk(field in (spec.securityContext ?? {}), `${metadata?.name}: OpenShift assigns ${field}`);
      }
      for (const { spec } of agents.values()) {
        t.equal(spec.serviceAccountName, 'archwright-agent', 'the account of the binding');
        const paths = spec.volumes?.flatMap(({ hostPath }) => hostPath?.path ?? []);
        t.ok(paths?.includes('/etc/containers') && paths.includes('/var/lib/kubelet/config.json'));
      }
      for (const part of ['agent', 'webhook', 'controller']) {
        const user = `system:serviceaccount:archwright:archwright-${part}`;
        const resource = 'securitycontextconstraints';
        const mayUse = (name: string, namespace = 'archwright'): Promise<boolean> =>
          isAllowed(cluster, user, {
            namespace,
            verb: 'use',
            group: 'security.openshift.io',
            resource,
            name,
          });
        t.equal(await mayUse('archwright-agent'), part === 'agent', part);
        t.notOk(await mayUse('privileged'), part);
        t.notOk(await mayUse('archwright-agent', 'default'), part);
      }
      const [webhook] = withWebhooks(await configMap(cluster, 'archwright')).webhooks;
      t.match(JSON.stringify(webhook), /\^\(kube-\.\*\|openshift-\.\*\|hypershift-\.\*\)\$/);
    },
  },
  'examples/kind/values.yaml': {
    check: async (t, cluster, agents) => {
      t.same([...agents.keys()].sort(), ownNodes, 'no agents on fake nodes');
      const pods = await cluster.list<OwnPod>(ownPods);
      const images = new Set(pods.flatMap(({ spec }) => spec.containers.map(({ image }) => image)));
      t.same([...images], ['localhost/archwright:dev'], 'the image of docker build');
      const away = pods.filter(({ spec }) => !ownNodes.includes(spec.nodeName ?? ''));
      t.same(away, [], 'the taint keeps other pods away');
      await cluster.applyYaml(readFileSync('examples/kind/pod.yaml', 'utf8'));
      const web = '/api/v1/namespaces/default/pods/web';
      const runs = await runningPod(cluster, 'web');
      t.match(runs.spec.nodeName, /^fake-/, 'pods with a toleration run there');
      await cluster.delete(web);
      await cluster.waitFor(web, (pod) => pod === undefined);
    },
  },
};

void t.test('the example values install, and the program reads their settings', async (t) => {
  t.same(
    [...globSync('examples/helm/*'), 'examples/kind/values.yaml'].sort(),
    Object.keys(examples).sort(),
    'each example is tested',
  );
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  await cluster.createNodes([edge]);
  for (const node of fakeNodes) await cluster.create(node);
  for (const { metadata } of fakeNodes) {
    const path = `/api/v1/nodes/${metadata?.name}`;
    await cluster.waitFor<NodeObject>(path, takesPods);
  }
  await cluster.createNamespace('archwright', { 'pod-security.kubernetes.io/enforce': 'privileged' });

  const helm = createHelm('helm4', cluster);
  for (const [file, { before, check }] of Object.entries(examples)) {
    await t.test(file, async (t) => {
      await before?.(cluster);
      const there = await steadyListing(cluster);
      await helm.run('install archwright', chart, `--wait --timeout 3m --values ${file}`);
      await check(t, cluster, await agentsByNode(cluster));
      await helm.run('uninstall archwright --wait --timeout 3m');
      await deleteKeptDefinitions(cluster);
      t.same(await differencesFrom(cluster, there), [], 'the cluster is as before');
    });
  }
});

async function agentsByNode(cluster: Cluster): Promise<ReadonlyMap<string, OwnPod>> {
  const pods = await cluster.list<OwnPod>(ownPods);
  const agents = pods.filter(({ metadata }) => metadata?.labels?.['app.kubernetes.io/component'] === 'agent');
  return new Map(agents.map((pod) => [pod.spec.nodeName ?? '', pod]));
}

async function configMap(cluster: Cluster, name: string): Promise<Rendered> {
  return cluster.get(`/api/v1/namespaces/archwright/configmaps/${name}`);
}

async function isAllowed(
  cluster: Cluster,
  user: string,
  what: {
    readonly namespace: string;
    readonly verb: string;
    readonly resource: string;
    readonly group?: string;
    readonly name?: string;
  },
): Promise<boolean> {
  const [resource, subresource] = what.resource.split('/');
  const review = await cluster.post<{ readonly status?: { readonly allowed?: boolean } }>(
    '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    { spec: { user, resourceAttributes: { ...what, resource, subresource } } },
  );
  return review.status?.allowed === true;
}
