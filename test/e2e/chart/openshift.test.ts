/** examples/helm/openshift.yaml: each pod is admitted by the SCC that it names, which allows nothing more. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { helms, type HelmName } from '../programs/helm.ts';
import { render } from './helm.ts';
import { faultsUnder, restrictedV2, type Constraints, type SecuredPod } from './openshift.ts';
import { objectsOf } from './rendered.ts';
import { merged } from './value-sets.ts';

const annotation = 'openshift.io/required-scc';
const values = parse(readFileSync('examples/helm/openshift.yaml', 'utf8')) as object;

interface OwnPod {
  readonly name: string;
  /** The SCC that it names. */
  readonly scc: string | undefined;
  readonly account: string | undefined;
  readonly spec: SecuredPod;
}

/** Every pod of the chart, of hooks and of the report too, and the SCC objects. */
function rendered(more: object = {}, helm: HelmName = 'helm4') {
  const objects = objectsOf(render(helm, merged(merged(values, { report: { enabled: true } }), more)));
  const pods = objects.flatMap((object): OwnPod[] => {
    const template = object.spec?.jobTemplate?.spec.template ?? object.spec?.template;
    const pod = object.kind === 'Pod' ? object : (template as KubeObject | undefined);
    if (pod === undefined || !('spec' in pod)) return [];
    const spec = pod.spec as SecuredPod & { readonly serviceAccountName?: string };
    const scc = pod.metadata?.annotations?.[annotation];
    return [{ name: object.metadata?.name ?? '', scc, account: spec.serviceAccountName, spec }];
  });
  const own = objects.filter(({ kind }) => kind === 'SecurityContextConstraints');
  return { objects, pods, own: own as readonly KubeObject[] as readonly Constraints[] };
}

for (const helm of helms) {
  t.test(`${helm}: each pod is admitted by the SCC that it names`, async (t) => {
    const { pods, own } = rendered({}, helm);
    t.equal(pods.length, 9);
    const sccs = new Map([restrictedV2, ...own].map((scc) => [scc.metadata?.name, scc]));
    for (const { name, scc, spec } of pods) {
      const found = sccs.get(scc);
      t.equal(scc, name === 'archwright-agent' ? 'archwright-agent' : 'restricted-v2', name);
      t.strictSame(found && faultsUnder(found, spec), [], name);
    }
  });
}

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
    const accounts = pods.filter(({ scc }) => scc === 'archwright-agent').map((pod) => pod.account);
    t.strictSame(accounts, [account]);
    const bound = objects.filter(
      ({ kind, metadata }) => kind?.endsWith('Binding') && /scc/.test(metadata?.name ?? ''),
    );
    t.strictSame(
      bound.map((object) => [object.kind, (object as { readonly subjects?: unknown }).subjects]),
      [['RoleBinding', [{ kind: 'ServiceAccount', name: account, namespace: 'archwright' }]]],
    );
  });
}

t.test('the SCC allows what agents need, and nothing more', async (t) => {
  const { pods, own } = rendered();
  const agent = pods.find(({ name }) => name === 'archwright-agent');
  const [scc] = own;
  if (!agent || !scc) throw new Error('no agent or no SCC');
  t.ok(faultsUnder(restrictedV2, agent.spec).length > 0, 'restricted-v2 is not enough');
  const permissions = Object.entries(scc).filter(([key, value]) => key.startsWith('allow') && value === true);
  t.strictSame(permissions, [['allowHostDirVolumePlugin', true]]);
  t.ok(faultsUnder({ ...scc, allowHostDirVolumePlugin: false }, agent.spec).length > 0);
  for (const volume of scc.volumes) {
    const less = { ...scc, volumes: scc.volumes.filter((each) => each !== volume) };
    // The API server adds the token of the service account as a projected volume.
    t.equal(faultsUnder(less, agent.spec).length > 0, volume !== 'projected', volume);
  }
  const writable = agent.spec.containers.flatMap(({ volumeMounts = [] }) =>
    volumeMounts.filter(({ readOnly }) => readOnly !== true).map(({ name }) => name),
  );
  t.strictSame(writable.sort(), ['state', 'tls'], 'files of the node are read-only');
});

t.test('changes that the SCC does not allow are refused', async (t) => {
  const agentOf = (agent: object): readonly string[] => {
    const { pods, own } = rendered({ agent });
    const pod = pods.find(({ name }) => name === 'archwright-agent');
    return pod && own[0] ? faultsUnder(own[0], pod.spec) : [];
  };
  const cases: [object, readonly string[]][] = [
    [{}, []],
    [{ hostNetwork: true }, ['host network', 'agent: host ports']],
    [{ podSecurityContext: { runAsUser: 65_532 } }, ['agent: user 65532']],
    [
      { podSecurityContext: { seLinuxOptions: { type: 'container_t' } } },
      ['agent: SELinux type container_t'],
    ],
    [{ podSecurityContext: { seccompProfile: { type: 'Unconfined' } } }, ['agent: seccomp Unconfined']],
    [{ securityContext: { privileged: true } }, ['agent: privileged']],
    [{ securityContext: { readOnlyRootFilesystem: false } }, ['agent: root file system']],
    [{ securityContext: { allowPrivilegeEscalation: true } }, ['agent: privilege escalation']],
    [{ extraVolumes: [{ name: 'x', nfs: { server: 's', path: '/' } }] }, ['volume nfs']],
  ];
  for (const [change, faults] of cases) t.strictSame(agentOf(change), faults, JSON.stringify(change));
});

t.test(
  'the service CA writes a Secret of its own: OpenShift replaces none of built-in certificates',
  async (t) => {
    const nameOf = (certificates: string): unknown[] => {
      const { objects } = rendered({ certificates });
      const service = objects.find(
        ({ kind, metadata }) => kind === 'Service' && metadata?.name?.endsWith('webhook'),
      );
      const role = objects.filter(
        ({ kind, metadata }) => kind === 'Role' && metadata?.name === 'archwright-controller',
      );
      const asked = service?.metadata?.annotations?.['service.beta.openshift.io/serving-cert-secret-name'];
      const webhook = objects.filter(
        ({ kind, metadata }) => kind === 'Role' && metadata?.name === 'archwright-webhook',
      );
      const isRead = JSON.stringify(webhook).includes('"archwright-webhook-serving-cert"');
      return [asked, isRead, JSON.stringify(role).includes('"archwright-webhook-tls"')];
    };
    const own = 'archwright-webhook-serving-cert';
    t.strictSame(nameOf('serviceCa'), [own, true, false]);
    t.strictSame(nameOf('builtin'), [undefined, false, true]);
  },
);
