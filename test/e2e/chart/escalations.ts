/** Attacks with a stolen token of the controller, and the controller's own requests. */
import type { KubeClient, Patch } from '../../../src/kube/api/client.ts';
import { archIn, archLabel, requiring, termOf } from '../../support/placement-input.ts';
import { patience } from '../cluster/harness.ts';

export const pod = '/api/v1/namespaces/default/pods/gated';
export const node = '/api/v1/nodes/worker';
export const account = '/api/v1/namespaces/archwright/serviceaccounts/archwright-controller';
export const webhooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';
/** The taint of another program. */
export const dedicated = { key: 'dedicated', value: 'db', effect: 'NoSchedule' };
const containers = [{ name: 'c', image: 'x' }];
const gates = (...names: readonly string[]): object => ({
  spec: { schedulingGates: names.map((name) => ({ name })) },
});

export type Call = (who: KubeClient) => Promise<unknown>;
export type Attempt = readonly [name: string, call: Call];

export function merge(path: string, body: object): Call {
  return (who) => who.patch(path, { type: 'merge', body }, { signal: patience() });
}
const label = (path: string, key: string, value: string | null): Call =>
  merge(path, { metadata: { labels: { [key]: value } } });
const annotation = (path: string, key: string, value: string | null): Call =>
  merge(path, { metadata: { annotations: { [key]: value } } });
const spec = (path: string, fields: object): Call => merge(path, { spec: fields });
const status = (path: string, fields: object): Call => merge(`${path}/status`, { status: fields });
function json(path: string, ...body: readonly object[]): Call {
  return (who) => who.patch(path, { type: 'json', body }, { signal: patience() });
}
function create(path: string, body: object): Call {
  return (who) => who.create(path, body, { signal: patience() });
}
export function get(path: string): Call {
  return (who) => who.get(path, { signal: patience() });
}
function remove(path: string): Call {
  return (who) => who.delete(path, { signal: patience() });
}

const secrets = '/api/v1/namespaces/archwright/secrets';
/** The API server puts a token of the account without expiry into it. */
const tokenSecret = {
  metadata: { annotations: { 'kubernetes.io/service-account.name': 'archwright-webhook' } },
  type: 'kubernetes.io/service-account-token',
};

/** A Secret of the controller, as it applies it. */
function applySecret(
  name: string,
  { metadata = {}, ...content }: { metadata?: object; [key: string]: unknown } = {},
): Call {
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'archwright', ...metadata },
    ...content,
  };
  const patch: Patch = { type: 'apply', body, fieldManager: 'archwright' };
  return (who) => who.patch(`${secrets}/${name}`, patch, { signal: patience() });
}

const own = { namespace: 'archwright', name: 'archwright-webhook' };

/** As K3s has one beside its issuer. */
export const otherAudience = 'k3s';

function setWebhooks(clientConfig: object, rule?: object): Call {
  const one = { name: 'pods.arch.example', admissionReviewVersions: ['v1'], sideEffects: 'None' };
  return merge(webhooks, { webhooks: [{ ...one, clientConfig, ...(rule && { rules: [rule] }) }] });
}

/**
 * Escalations with a stolen token of the controller. Policies refuse them, whatever roles grant. What roles grant is
 * in `rights.test.ts`.
 */
export const refusedByPolicies: readonly Attempt[] = [
  [
    'another image',
    json(pod, { op: 'replace', path: '/spec/containers/0/image', value: 'evil.example/x:1' }),
  ],
  ["another controller's gate", merge(pod, gates('arch.example/scheduling-gate'))],
  ['another label of archwright on a pod', label(pod, 'arch.example/placement', 'disabled')],
  ['another value of its label on a pod', label(pod, 'arch.example/placement-state', 'victim')],
  ['an annotation of another program removed', annotation(pod, 'x.example/kept', null)],
  ['a deletion cost of another program', annotation(pod, deletionCost, '1')],
  ['the status of a pod', status(pod, { phase: 'Failed' })],
  ['an ephemeral container', spec(`${pod}/ephemeralcontainers`, { ephemeralContainers: containers })],
  [
    'a binding to a node',
    create(`${pod}/binding`, { metadata: { name: 'gated' }, target: { kind: 'Node', name: 'worker' } }),
  ],
  [
    'a command in a container',
    (who) => who.create(`${pod}/exec`, {}, { signal: patience(), query: { command: 'sh', stdout: 'true' } }),
  ],
  [
    'a new pod',
    create('/api/v1/namespaces/default/pods', { metadata: { name: 'evil' }, spec: { containers } }),
  ],
  ['a deleted pod', remove(pod)],
  ['a deleted node', remove(node)],
  ["another program's taint removed", spec(node, { taints: [] })],
  ['a taint that evicts pods', spec(node, { taints: [dedicated, { key: 'x', effect: 'NoExecute' }] })],
  ["another program's taint recorded as archwright's", annotation(node, 'arch.example/taint', 'dedicated')],
  ['another label of archwright on a node', label(node, 'arch.example/placement', 'x')],
  ['a CPU level that does not exist', label(node, 'arch.example/amd64-level', 'v9')],
  ['a role label of a node', label(node, 'node-role.kubernetes.io/control-plane', '')],
  ['the status of a node', status(node, { nodeInfo: { architecture: 'arm64' } })],
  [
    "another program's service as a webhook",
    setWebhooks({ service: { namespace: 'kube-system', name: 'evil' } }),
  ],
  ['a URL as a webhook', setWebhooks({ url: 'https://evil.example/' })],
  [
    'Secrets sent to the webhook',
    setWebhooks(
      { service: own },
      { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['secrets'] },
    ),
  ],
  [
    'another ConfigMap',
    create('/api/v1/namespaces/archwright/configmaps', { metadata: { name: 'archwright-evil' } }),
  ],
  ['a token of another account of its namespace', applySecret('archwright-webhook-path', tokenSecret)],
  [
    'a Secret that names an account',
    applySecret('archwright-webhook-path', { metadata: tokenSecret.metadata, type: 'Opaque' }),
  ],
  [
    'an own Secret that cannot be changed any more',
    applySecret('archwright-webhook-path', { immutable: true }),
  ],
  [
    'a token of another account, for another audience of the API server',
    create('/api/v1/namespaces/archwright/serviceaccounts/archwright-webhook/token', {
      spec: { audiences: [otherAudience] },
    }),
  ],
  ['another Secret', create(secrets, { metadata: { name: 'archwright-evil' } })],
  [
    'another Lease',
    create('/apis/coordination.k8s.io/v1/namespaces/archwright/leases', {
      metadata: { name: 'another-leader' },
    }),
  ],
];

/** The controller's writes, in an order without repeated changes. */
export const controllerWrites: readonly Attempt[] = [
  [
    'placement of a gated pod',
    json(
      pod,
      { op: 'add', path: '/metadata/annotations/arch.example~1decision', value: '{"v":1}' },
      { op: 'add', path: '/spec/nodeSelector', value: { 'kubernetes.io/arch': 'arm64' } },
      {
        op: 'add',
        path: '/spec/tolerations/-',
        value: { key: archLabel, value: 'arm64', effect: 'NoSchedule' },
      },
      { op: 'add', path: '/spec/affinity', value: requiring(termOf(archIn('arm64'))).affinity },
      { op: 'replace', path: '/spec/schedulingGates', value: [{ name: 'x.example/theirs' }] },
    ),
  ],
  [
    "a pod's deletion cost",
    merge(pod, { metadata: { annotations: { [deletionCost]: '-1', 'arch.example/rollout-order': '-1' } } }),
  ],
  ['its label on a pod', label(pod, 'arch.example/placement-state', 'placed')],
  ['its label removed', label(pod, 'arch.example/placement-state', null)],
  [
    'its taint on a node',
    json(
      node,
      {
        op: 'add',
        path: '/spec/taints/-',
        value: { key: 'arch.example/architecture', value: 'arm64', effect: 'NoSchedule' },
      },
      { op: 'add', path: '/metadata/annotations/arch.example~1taint', value: 'arch.example/architecture' },
    ),
  ],
  ['its label on a node', label(node, 'arch.example/agent', 'true')],
  [
    'its taint and label removed',
    json(
      node,
      { op: 'remove', path: '/spec/taints/2' },
      { op: 'remove', path: '/metadata/annotations/arch.example~1taint' },
      { op: 'remove', path: '/metadata/labels/arch.example~1agent' },
    ),
  ],
  ['a new Secret of certificates', applySecret('archwright-webhook-tls')],
];
