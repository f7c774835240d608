/**
 * With default values, the roles have exactly the rights that the code needs. A new request needs an entry
 * here and in `charts/archwright/templates/_rules.tpl` or `rbac.yaml`.
 */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import { features } from '../../src/controller/features.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules: readonly Rule[];
}

const roles = ['deploy/archwright.yaml', 'deploy/clean.yaml', 'deploy/report.yaml']
  .flatMap((file) => parseAllDocuments(readFileSync(file, 'utf8')))
  .map((document) => document.toJS() as Role)
  .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');

function nameOf({ kind, metadata }: Role): string {
  return `${kind} ${metadata.name}`;
}

/** `resource verb verb`, of named objects `resource/name verb`; one line for each resource. */
function rightsOf(role: string): readonly string[] {
  const verbs = new Map<string, Set<string>>();
  for (const { rules } of roles.filter((each) => nameOf(each) === role))
    for (const rule of rules)
      for (const resource of rule.resources)
        for (const object of rule.resourceNames ?? [undefined]) {
          const key = object === undefined ? resource : `${resource}:${object}`;
          verbs.set(key, new Set([...(verbs.get(key) ?? []), ...rule.verbs]));
        }
  return [...verbs].map(([key, all]) => `${key} ${[...all].toSorted().join(' ')}`).toSorted();
}

const secrets = [
  'agent-tls',
  'ca',
  'controller-client-tls',
  'webhook-client-tls',
  'webhook-path',
  'webhook-tls',
];

/** By kind and name of the role. */
const expected: Readonly<Record<string, readonly string[]>> = {
  'ClusterRole archwright-webhook': [
    // src/cluster/cluster.ts, cmd/wiring/cluster-policies.ts
    'architecturerollouts list watch',
    'clusterpodplacementconfigs list watch',
    'namespaces list watch',
    'nodes list watch',
    'podplacementconfigs list watch',
  ],
  'Role archwright-webhook': [
    // src/cluster/config-map.ts
    'configmaps:archwright-broken-images list watch',
    'configmaps:archwright-drift list watch',
    // cmd/wiring/fleet.ts
    'endpointslices list watch',
    // src/kube/election/leader-watch.ts
    'leases:archwright-controller list watch',
    // cmd/webhook.ts
    'secrets:archwright-webhook-client-tls list watch',
    'secrets:archwright-webhook-path list watch',
    'secrets:archwright-webhook-tls list watch',
  ],
  'ClusterRole archwright-webhook-pull-secrets': ['secrets get', 'serviceaccounts get'],
  'ClusterRole archwright-controller': [
    'architecturerollouts list watch',
    // rollouts/rollouts.ts
    'architecturerollouts/status patch',
    // resources/resources.ts
    'clusterpodplacementconfigs list watch',
    'clusterpodplacementconfigs/status patch',
    // cmd/explain.ts, by kubectl exec
    'cronjobs get',
    // taints/blockers.ts
    'daemonsets get',
    // cmd/explain.ts, by kubectl exec
    'deployments get',
    // src/kube/events/events.ts
    'events create patch',
    // pods/workload.ts
    'jobs get',
    // webhook-configuration/, certificates/reconcile.ts
    'mutatingwebhookconfigurations:archwright get list patch watch',
    // cmd/explain.ts, by kubectl exec
    'namespaces get list watch',
    // taints/taints.ts, node-labels/node-labels.ts
    'nodes get list patch watch',
    // rollouts/volumes.ts
    'persistentvolumeclaims get',
    'persistentvolumes get',
    'podplacementconfigs list watch',
    'podplacementconfigs/status patch',
    // gates/remove-gate.ts, taints/tolerate-pods.ts
    'pods get list patch watch',
    // misplaced/evictions.ts, rollouts/mover.ts
    'pods/eviction create',
    // exec-format/exec-format.ts
    'pods/log get',
    'replicasets get',
    'replicationcontrollers get',
    'statefulsets get',
    // facts-api/callers.ts
    'subjectaccessreviews create',
    'tokenreviews create',
  ],
  'Role archwright-explain': [
    // cmd/wiring/cluster.ts, cmd/lookups/pod-facts.ts, cmd/report/judged-pods.ts
    'configmaps:archwright get list',
    'configmaps:archwright-broken-images get list',
    'configmaps:archwright-drift get list',
    // src/facts-api/client.ts
    'services/proxy:https:archwright-controller:facts create',
  ],
  'Role archwright-controller': [
    // write/own-data.ts
    'configmaps:archwright-broken-images create get list patch watch',
    'configmaps:archwright-drift create get list patch watch',
    'endpointslices list watch',
    // src/kube/election/lease-lock.ts
    'leases create',
    // cmd/explain/policies.ts too
    'leases:archwright-controller get list patch',
    // write/own-data.ts
    ...secrets.map((name) => `secrets:archwright-${name} create get list patch watch`),
  ],
  'ClusterRole archwright-controller-pull-secrets': ['secrets get', 'serviceaccounts get'],
  // daemon/certificate/certificate.ts
  'ClusterRole archwright-agent': ['certificatesigningrequests create get'],
  'ClusterRole archwright-signer': [
    // agent-certificates/agent-certificates.ts
    'certificatesigningrequests delete list watch',
    'certificatesigningrequests/approval patch',
    'certificatesigningrequests/status patch',
    'signers:arch.example/agent approve sign',
  ],
  'ClusterRole archwright-clean': [
    'certificatesigningrequests delete list',
    'mutatingwebhookconfigurations:archwright delete get',
    'nodes get list patch',
    'pods get list patch',
    'reports:archwright-report delete list',
  ],
  'Role archwright-clean': [
    'configmaps:archwright-broken-images delete get',
    'configmaps:archwright-drift delete get',
    'configmaps:archwright-report delete get',
    'leases create',
    'leases:archwright-controller delete get patch',
    ...secrets.map((name) => `secrets:archwright-${name} delete get`),
  ],
  'ClusterRole archwright-report': [
    // cmd/report/pods.ts
    'nodes list',
    'pods list',
    // cmd/report/workloads.ts
    'daemonsets get',
    'jobs get list',
    'replicasets get list',
    'replicationcontrollers get list',
    'statefulsets get list',
    // src/facts-api/callers.ts
    'imagefacts create',
    // cmd/report/publish.ts
    'reports:archwright-report create delete list patch',
  ],
  'Role archwright-report': [
    // cmd/wiring/cluster.ts, cmd/lookups/pod-facts.ts, cmd/report/judged-pods.ts
    'configmaps:archwright get',
    'configmaps:archwright-broken-images list',
    'configmaps:archwright-drift list',
    // cmd/report/publish.ts
    'configmaps:archwright-report create get patch',
    // src/facts-api/client.ts
    'serviceaccounts/token:archwright-report create',
    'services/proxy:https:archwright-controller:facts create',
  ],
};

for (const [role, rights] of Object.entries(expected)) {
  t.test(`${role} has exactly these rights`, async (t) => t.strictSame(rightsOf(role), rights.toSorted()));
}

t.test('no role has a wildcard, and this test knows all roles', async (t) => {
  for (const { metadata, rules } of roles)
    for (const rule of rules)
      t.notOk([...rule.verbs, ...rule.resources, ...rule.apiGroups].includes('*'), metadata.name);
  // Roles for users.
  const others = roles.map(nameOf).filter((each) => !Object.hasOwn(expected, each));
  t.strictSame(others.toSorted(), ['ClusterRole archwright-edit', 'ClusterRole archwright-view']);
});

t.test('the policy for nodes allows the labels that `archwright clean` removes', async (t) => {
  const [, policy = ''] =
    /^  name: archwright-own-nodes\n([^]*?)^---/m.exec(readFileSync('deploy/archwright.yaml', 'utf8')) ?? [];
  const labels = features.flatMap(({ leftovers }) => leftovers?.nodes?.labelSelector?.split('=')[0] ?? []);
  t.strictSame(labels, ['arch.example/agent', 'arch.example/amd64-level']);
  t.match(policy, `k in ['${labels.join("','")}']`);
});
