/** An example of each kind that archwright's accounts write, and the changes that roles and policies allow. */
import { createRequest } from '../../../daemon/certificate/signing-request.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import type { Example } from './generated-changes.ts';

const apiVersions = {
  Event: 'v1',
  ConfigMap: 'v1',
  Secret: 'v1',
  Pod: 'v1',
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  Lease: 'coordination.k8s.io/v1',
  CertificateSigningRequest: 'certificates.k8s.io/v1',
  ClusterPodPlacementConfig: 'arch.example/v1alpha1',
  PodPlacementConfig: 'arch.example/v1alpha1',
  ArchitectureRollout: 'arch.example/v1alpha1',
  Report: 'openreports.io/v1alpha1',
};

/** @param name `name`, or `namespace/name` */
function made(kind: keyof typeof apiVersions, path: string, content: object = {}): KubeObject {
  const [name = '', namespace] = path.split('/').toReversed();
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  return { apiVersion: apiVersions[kind], kind, metadata, ...content };
}

const component = 'archwright-controller';
const event = (name: string): KubeObject =>
  made('Event', `default/${name}`, {
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'gated' },
    type: 'Normal',
    reason: 'Placed',
    message: 'placed',
    source: { component },
    reportingComponent: component,
    reportingInstance: component,
  });
const signing = {
  signerName: 'arch.example/agent',
  request: Buffer.from(createRequest('worker').request).toString('base64'),
  usages: ['digital signature', 'server auth'],
};
export const agentRequest = (slot: number): KubeObject =>
  made('CertificateSigningRequest', `archwright-agent-${slot}.worker`, { spec: signing });
const opaque = { type: 'Opaque', data: { a: 'eA==' } };
const data = { data: { a: 'x' } };
const lease = made('Lease', 'archwright/archwright-controller');
const podSpec = { containers: [{ name: 'c', image: 'registry.example/app:1' }] };
const template = { metadata: { labels: { app: 'web' } }, spec: podSpec };
const workload = { selector: { matchLabels: { app: 'web' } }, template };
const rollout = { targets: [{ kind: 'Deployment', name: 'web' }], architecture: 'arm64' };

/** By account and resource. A path: the object is there already. */
export const examples: Readonly<Record<string, Readonly<Record<string, Example>>>> = {
  'archwright-agent': {
    certificatesigningrequests: { created: agentRequest(2) },
  },
  'archwright-controller': {
    pods: { stored: '/api/v1/namespaces/default/pods/gated' },
    nodes: { stored: '/api/v1/nodes/worker' },
    mutatingwebhookconfigurations: {
      stored: '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright',
    },
    events: { stored: event('gated.0'), created: event('gated.1') },
    leases: {
      stored: made('Lease', 'archwright/archwright-controller', { spec: { holderIdentity: 'x' } }),
      created: lease,
    },
    configmaps: {
      stored: made('ConfigMap', 'archwright/archwright-drift', data),
      created: made('ConfigMap', 'archwright/archwright-broken-images', data),
    },
    secrets: {
      stored: made('Secret', 'archwright/archwright-ca', opaque),
      created: made('Secret', 'archwright/archwright-webhook-path', opaque),
    },
    'certificatesigningrequests/approval': { stored: agentRequest(1) },
    'certificatesigningrequests/status': { stored: agentRequest(1) },
    'clusterpodplacementconfigs/status': {
      stored: made('ClusterPodPlacementConfig', 'cluster', { spec: {} }),
    },
    'podplacementconfigs/status': { stored: made('PodPlacementConfig', 'default/example', { spec: {} }) },
    'architecturerollouts/status': {
      stored: made('ArchitectureRollout', 'default/example', { spec: rollout }),
    },
  },
  'archwright-clean': {
    pods: { stored: '/api/v1/namespaces/default/pods/gated' },
    nodes: { stored: '/api/v1/nodes/worker' },
    leases: {
      stored: '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller',
      created: lease,
    },
    deployments: { stored: made('Deployment', 'default/web', { spec: workload }) },
    statefulsets: { stored: made('StatefulSet', 'default/web', { spec: workload }) },
  },
  'archwright-startup-check': {
    pods: { created: made('Pod', 'default/checked', { spec: podSpec }) },
  },
  'archwright-test': {
    pods: { created: made('Pod', 'default/checked', { spec: podSpec }) },
  },
  'archwright-report': {
    configmaps: {
      stored: made('ConfigMap', 'archwright/archwright-report', data),
      created: made('ConfigMap', 'archwright/archwright-report', data),
    },
    reports: {
      stored: made('Report', 'default/archwright-report'),
      created: made('Report', 'default/archwright-report'),
    },
  },
};

/** These write no object that stays. */
export const storesNothing: readonly string[] = [
  'pods/eviction',
  'tokenreviews',
  'subjectaccessreviews',
  'imagefacts',
  'services/proxy',
  'serviceaccounts/token',
];

/** What is accepted, and why. Everything else must be refused. */
export const allowedChanges: readonly (readonly [change: RegExp, why: string])[] = [
  [/^\w+ \S+ metadata\.(?:generateName|selfLink)$/, 'they mean nothing on a stored object'],
  [
    /^create \S+ metadata\.(?:creationTimestamp|generation|uid|deletionGracePeriodSeconds)$/,
    'the API server sets them',
  ],
  [/^create \S+ metadata\.(?:annotations|labels)$/, 'admission plugins may mark new objects'],
  [/^create certificatesigningrequests spec\.(?:extra|groups|uid|username)$/, 'the API server sets them'],
  [/^create pods /, 'a dry run: others are refused'],
  [/^patch pods spec\.(?:affinity|nodeSelector|tolerations)$/, 'placement'],
  [/^patch mutatingwebhookconfigurations webhooks$/, 'none at all: then no pod is placed'],
  [/^(?:create|patch) events (?!metadata)/, 'events inform, and name archwright as their source'],
  [/^create events metadata\.name$/, 'any name'],
  [/^(?:create|patch) leases spec\./, 'the election of the leader'],
  [/^(?:create|patch) configmaps (?:binaryData|data)$/, "archwright's notes"],
  [/^(?:create|patch) secrets (?:data|stringData)$/, "archwright's keys and certificates"],
  [/^patch certificatesigningrequests\/(?:approval|status) status\./, 'RBAC limits the signer'],
  [/^patch \w+\/status status\./, 'the status of custom resources'],
  [/^(?:create|patch) reports (?!metadata)/, 'the report'],
];
