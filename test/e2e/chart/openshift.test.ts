/** examples/helm/openshift.yaml: what its SCC allows, and that each pod fits the SCC that it names. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { helms, type HelmName } from '../programs/helm.ts';
import { render } from './helm.ts';
import { objectsOf, podsIn, type PodTemplate } from './rendered.ts';
import { merged } from './value-sets.ts';

const annotation = 'openshift.io/required-scc';
const values = parse(readFileSync('examples/helm/openshift.yaml', 'utf8')) as object;

interface Constraints extends KubeObject {
  readonly users: unknown;
  readonly groups: unknown;
}

/** Every pod of the chart, of hooks and of the report too, and the SCC objects. */
function rendered(more: object = {}, helm: HelmName = 'helm4') {
  const objects = objectsOf(render(helm, merged(merged(values, { report: { enabled: true } }), more)));
  const own = objects.filter(({ kind }) => kind === 'SecurityContextConstraints');
  return { objects, pods: podsIn(objects), own: own as readonly KubeObject[] as readonly Constraints[] };
}

const sccOf = ({ metadata }: PodTemplate): string | undefined => metadata?.annotations?.[annotation];

/** Of every SCC in use: no capabilities, and the default profile of seccomp. */
const container = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
};
const seccompProfile = { type: 'RuntimeDefault' };
const seLinuxOptions = { type: 'spc_t', level: 's0' };

for (const helm of helms) {
  t.test(`${helm}: each pod fits the SCC that it names`, async (t) => {
    const { pods } = rendered({}, helm);
    t.equal(pods.size, 9);
    for (const [name, pod] of pods) {
      const { spec } = pod;
      const isAgent = name === 'archwright-agent';
      t.equal(sccOf(pod), isAgent ? 'archwright-agent' : 'restricted-v2', name);
      t.strictSame(
        spec.securityContext,
        isAgent
          ? { runAsUser: 0, runAsGroup: 0, seLinuxOptions, seccompProfile }
          : { runAsNonRoot: true, seccompProfile },
        `${name}: OpenShift assigns what restricted-v2 takes from the namespace`,
      );
      const containers = [...(spec.initContainers ?? []), ...spec.containers];
      for (const { securityContext } of containers) t.strictSame(securityContext, container, name);
      t.notMatch(JSON.stringify(spec), /"(?:hostNetwork|hostPID|hostIPC|hostPort)":/, name);
      if (!isAgent) for (const volume of spec.volumes ?? []) t.ok('configMap' in volume, name);
    }
  });
}

const use = {
  apiGroups: ['security.openshift.io'],
  resources: ['securitycontextconstraints'],
  resourceNames: ['archwright-agent'],
  verbs: ['use'],
};

for (const [fullname, account] of [
  ['archwright', 'archwright-agent'],
  ['prod', 'prod-agent'],
] as const) {
  t.test(`${fullname}: only the agents may use their SCC, by a Role`, async (t) => {
    const { objects, pods, own } = rendered({ fullnameOverride: fullname });
    t.strictSame(
      own.map(({ metadata, users, groups }) => [metadata?.name, users, groups]),
      [['archwright-agent', [], []]],
    );
    const agents = [...pods.values()].filter((pod) => sccOf(pod) === 'archwright-agent');
    t.strictSame(
      agents.map(({ spec }) => spec.serviceAccountName),
      [account],
    );
    const bound = objects.filter(
      ({ kind, metadata }) => kind?.endsWith('Binding') && /scc/.test(metadata?.name ?? ''),
    );
    const roles = objects.filter((object) => JSON.stringify(object).includes('securitycontextconstraints'));
    t.strictSame(
      roles.map((object) => [object.kind, object.metadata, (object as { readonly rules?: unknown }).rules]),
      [['Role', { name: 'archwright-agent-scc', namespace: 'archwright' }, [use]]],
    );
    t.strictSame(bound, [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'archwright-agent-scc', namespace: 'archwright' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'archwright-agent-scc' },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace: 'archwright' }],
      },
    ]);
  });
}

t.test('the SCC allows what agents need, and nothing more', async (t) => {
  const { pods, own } = rendered();
  t.equal(own.length, 1);
  const { metadata, ...scc } = own[0] ?? {};
  t.equal(metadata?.name, 'archwright-agent');
  t.strictSame(scc, {
    apiVersion: 'security.openshift.io/v1',
    kind: 'SecurityContextConstraints',
    allowHostDirVolumePlugin: true,
    allowHostIPC: false,
    allowHostNetwork: false,
    allowHostPID: false,
    allowHostPorts: false,
    allowPrivilegeEscalation: false,
    allowPrivilegedContainer: false,
    allowedCapabilities: [],
    defaultAddCapabilities: [],
    requiredDropCapabilities: ['ALL'],
    readOnlyRootFilesystem: true,
    runAsUser: { type: 'MustRunAs', uid: 0 },
    seLinuxContext: { type: 'MustRunAs', seLinuxOptions },
    fsGroup: { type: 'RunAsAny' },
    supplementalGroups: { type: 'RunAsAny' },
    seccompProfiles: ['runtime/default'],
    volumes: ['configMap', 'emptyDir', 'hostPath', 'projected', 'secret'],
    priority: null,
    users: [],
    groups: [],
  });
  const agent = pods.get('archwright-agent')?.spec;
  const kinds = agent?.volumes?.flatMap((volume) => Object.keys(volume).filter((key) => key !== 'name'));
  // The API server adds the token of the service account as a projected volume.
  t.strictSame([...new Set(kinds)].sort(), ['configMap', 'emptyDir', 'hostPath', 'secret']);
  const mounts = agent?.containers.flatMap(({ volumeMounts = [] }) => volumeMounts) ?? [];
  const writable = mounts.filter(({ readOnly }) => readOnly !== true);
  t.strictSame(writable.map(({ name }) => name).sort(), ['state', 'tls'], 'files of the node are read-only');
});

t.test(
  'the service CA writes a Secret of its own: OpenShift replaces none of built-in certificates',
  async (t) => {
    const nameOf = (certificates: string): unknown[] => {
      const { objects } = rendered({ certificates });
      const named = (kind: string, name: string) =>
        objects.filter((each) => each.kind === kind && each.metadata?.name === name);
      const [service] = named('Service', 'archwright-webhook');
      const asked = service?.metadata?.annotations?.['service.beta.openshift.io/serving-cert-secret-name'];
      const isRead = JSON.stringify(named('Role', 'archwright-webhook')).includes(`"${servingCert}"`);
      const written = JSON.stringify(named('Role', 'archwright-controller'));
      return [asked, isRead, written.includes('"archwright-webhook-tls"')];
    };
    const servingCert = 'archwright-webhook-serving-cert';
    t.strictSame(nameOf('serviceCa'), [servingCert, true, false]);
    t.strictSame(nameOf('builtin'), [undefined, false, true]);
  },
);
