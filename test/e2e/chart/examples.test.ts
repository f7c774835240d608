/** Each example values file renders what its comment says. The API servers take its objects in `versions.test.ts`. */
import { globSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { render } from './helm.ts';
import { objectsOf, podsIn, withWebhooks, type PodTemplate, type Rendered } from './rendered.ts';
import { like } from '../../support/like.ts';

interface Role extends KubeObject {
  readonly rules?: readonly { readonly resources?: readonly string[] }[];
}

interface Example {
  readonly objects: readonly Rendered[];
  /** Pods of agents, by the name of their DaemonSet. */
  readonly agents: ReadonlyMap<string, PodTemplate>;
}

const checks: Readonly<Record<string, (t: Test, example: Example, text: string) => void>> = {
  'examples/helm/careful.yaml': (t, { objects, agents }) => {
    const [webhook] = withWebhooks(configMap(objects, 'archwright')).webhooks;
    like(t, webhook, { namespaceSelector: { matchLabels: { 'arch.example/enabled': 'true' } } });
    const roles = objects.filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole') as readonly Role[];
    const allowing = (resource: string): readonly Role[] =>
      roles.filter(({ rules }) => rules?.some(({ resources }) => resources?.includes(resource)));
    t.strictSame(
      allowing('serviceaccounts').map(
        ({ kind, metadata }) => `${kind} ${metadata?.namespace} ${metadata?.name}`,
      ),
      ['webhook', 'controller'].flatMap((part) =>
        ['shop', 'billing'].map((namespace) => `Role ${namespace} archwright-${part}-pull-secrets`),
      ),
      'pull secrets of two namespaces',
    );
    t.notOk(allowing('secrets').some(({ kind }) => kind === 'ClusterRole'));
    t.strictSame(allowing('pods/eviction'), [], 'nothing evicted');
    t.strictSame([...agents.values()].flatMap(hostPaths), [], 'no files of the nodes');
  },
  'examples/helm/node-pools.yaml': (t, { objects, agents }) => {
    const label = 'node-role.example.com/edge';
    t.strictSame([...agents.keys()], ['archwright-agent-cloud', 'archwright-agent-edge']);
    for (const [name, agent] of agents) {
      const isEdge = name.endsWith('edge');
      const own = requiredBy(agent).filter(({ key }) => key === label);
      t.strictSame(own, isEdge ? [] : [{ key: label, operator: 'DoesNotExist' }], name);
      t.strictSame(agent.spec.nodeSelector, isEdge ? { [label]: 'true' } : undefined, name);
      const containerd = '/var/lib/rancher/k3s/agent/etc/containerd';
      t.equal(hostPaths(agent).includes(containerd), isEdge, `${name}: configuration of k3s`);
      const map = agent.spec.volumes?.find((volume) => volume.name === 'config')?.configMap?.name;
      t.equal(toml(objects, map ?? '').includes(`${containerd}/config.toml`), isEdge, name);
    }
  },
  'examples/helm/private-registries.yaml': (t, { objects, agents }, text) => {
    // Created by the command in the file's comment.
    const [, namespace, name, key] =
      /kubectl -n (\S+) create secret generic (\S+) --from-literal=([^=]+)=\$'.*'$/m.exec(text) ?? [];
    t.equal(namespace, 'archwright');
    for (const { spec } of agents.values()) {
      const sources = spec.volumes?.flatMap(({ projected }) => projected?.sources ?? []) ?? [];
      like(t, sources, [{ secret: { name, items: [{ key }] } }]);
    }
    t.match(toml(objects, 'archwright'), /proxies = \["docker\.io=docker-proxy\.company\.corp"\]/);
    t.match(toml(objects, 'archwright'), /preferredArchitecture = "arm64"/);
  },
  // Its SCC and its pods: `openshift.test.ts`.
  'examples/helm/openshift.yaml': (t, { objects, agents }) => {
    const [agent] = [...agents.values()].map(hostPaths);
    t.ok(agent?.includes('/etc/containers') && agent.includes('/var/lib/kubelet/config.json'));
    const [webhook] = withWebhooks(configMap(objects, 'archwright')).webhooks;
    t.match(JSON.stringify(webhook), /\^\(kube-\.\*\|openshift-\.\*\|hypershift-\.\*\)\$/);
  },
};

// That of kind: `test/examples`.
t.strictSame(globSync('examples/helm/*').sort(), Object.keys(checks).sort(), 'each example is tested');
for (const [file, check] of Object.entries(checks)) {
  t.test(file, async (t) => {
    const text = readFileSync(file, 'utf8');
    const objects = objectsOf(render('helm4', parse(text) as object));
    const agents = podsIn(objects.filter(({ kind }) => kind === 'DaemonSet'));
    t.ok(agents.size > 0);
    check(t, { objects, agents }, text);
  });
}

function hostPaths({ spec }: PodTemplate): readonly string[] {
  return spec.volumes?.flatMap(({ hostPath }) => hostPath?.path ?? []) ?? [];
}

function requiredBy({ spec: { affinity } }: PodTemplate) {
  const { nodeSelectorTerms } = affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  return nodeSelectorTerms.flatMap(({ matchExpressions }) => matchExpressions ?? []);
}

function configMap(objects: readonly Rendered[], name: string): Rendered | undefined {
  return objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata?.name === name);
}

function toml(objects: readonly Rendered[], name: string): string {
  return configMap(objects, name)?.data?.['archwright.toml'] ?? '';
}
