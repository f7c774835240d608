/** Values for all parts: names, image, labels, certificates, credentials, custom resources. */
import type { JsonSchema } from '../../../../src/policy/settings/setting.ts';
import {
  on,
  off,
  object,
  objects,
  oneOf,
  shaped,
  text,
  textMap,
  texts,
  valuesOf,
  type Described,
  type Section,
} from '../value.ts';

/** Kinds of objects with their own labels and annotations. */
export const labeledKinds = [
  'pod',
  'deployment',
  'daemonset',
  'service',
  'serviceaccount',
  'clusterrole',
  'clusterrolebinding',
  'role',
  'rolebinding',
  'configmap',
  'secret',
  'mutatingwebhookconfiguration',
  'certificate',
  'issuer',
  'job',
] as const;

/** `pod.labels`, `pod.annotations` and so on. */
function perKind(): Described {
  return Object.fromEntries(
    labeledKinds.flatMap((kind) => [
      [`${kind}.labels`, textMap(`Labels of each ${kind}.`, {}, { tier: 'infra' })],
      [`${kind}.annotations`, textMap(`Annotations of each ${kind}.`, {}, { 'example.com/note': 'hello' })],
    ]),
  );
}

/** Names of Secrets are DNS subdomains. Their keys allow fewer characters than file names. */
const credential: JsonSchema = {
  type: 'object',
  properties: {
    user: { type: 'string', minLength: 1 },
    secret: { type: 'string', minLength: 1 },
    existingSecret: { type: 'string', minLength: 1 },
    key: { type: 'string', minLength: 1 },
  },
  additionalProperties: false,
  oneOf: [{ required: ['user', 'secret'] }, { required: ['existingSecret'] }],
};

export const general: readonly Section[] = [
  {
    title: 'Names and image',
    values: valuesOf('', {
      nameOverride: text('Replaces the chart’s name in labels and names.', '', 'arch'),
      fullnameOverride: text('Prefix of every object’s name.', '', 'placement'),
      namespaceOverride: text(
        'Namespace of all objects, for charts with this chart as a dependency. Empty: the namespace of the release.',
        '',
        'default',
      ),
      'image.registry': text('Registry of the image.', 'ghcr.io', 'registry.example.com'),
      'image.repository': text('Repository of the image.', 'archwright/archwright', 'mirror/archwright'),
      'image.tag': text('Tag of the image. Empty: the chart’s version of archwright.', '', '0.1.1'),
      'image.digest': text('Digest of the image. It replaces the tag.', '', `sha256:${'1'.repeat(64)}`),
      'image.pullPolicy': oneOf('Always', 'IfNotPresent', 'Never')(
        'Pull policy of the image.',
        'IfNotPresent',
        'Always',
      ),
      'image.architectures': texts(
        'Architectures of the image. All pods of the chart, including agents, run only on Linux nodes with these architectures. Empty: every Linux node.',
        ['amd64', 'arm64'],
        ['amd64'],
      ),
      imagePullSecrets: objects(
        'Pull secrets for the image, in the namespace of the release.',
        [],
        [{ name: 'registry-login' }],
      ),
    }),
  },
  {
    title: 'Global values',
    values: valuesOf('global', {
      imageRegistry: text('Replaces `image.registry`.', '', 'mirror.example.com'),
      imagePullSecrets: objects('Additional pull secrets.', [], [{ name: 'global-login' }]),
      commonLabels: textMap('Labels of every object.', {}, { team: 'platform' }),
      priorityClassName: text('Default priority class of every pod.', '', 'system-cluster-critical'),
      nodeSelector: textMap('Default node selector of webhook, controller and Jobs.', {}, { pool: 'system' }),
      tolerations: objects(
        'Additional tolerations of webhook, controller and Jobs.',
        [],
        [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
      ),
    }),
  },
  {
    title: 'Registry credentials',
    values: valuesOf('', {
      registryCredentials: shaped(
        // Without a slash, because agents read no file below `creds/`.
        {
          type: 'object',
          propertyNames: { pattern: '^[A-Za-z0-9*\\[][^/\\s]*$' },
          additionalProperties: credential,
        },
        {
          help:
            'Credentials by registry, mounted as `creds/<registry>.toml`: either `user` and `secret`, or an `existingSecret` with ' +
            'such a file under `key` (default: `<registry>.toml`; a port is written `_5000_`, `*` is `_`).',
          default: {},
          example: { 'ghcr.io': { existingSecret: 'ghcr-login', key: 'ghcr.io.toml' } },
        },
      ),
      dockerConfigSecretName: text(
        'Secret of type `kubernetes.io/dockerconfigjson` in the namespace of the release, used like `registryCredentials`.',
        '',
        'registry-login',
      ),
    }),
  },
  {
    title: 'Certificates',
    values: valuesOf('', {
      certificates: oneOf(
        'builtin',
        'certManager',
        'external',
        'serviceCa',
      )(
        'Issuer of the certificates: the controller (`builtin`), cert-manager with objects of this chart (`certManager`), you: ' +
          'you write the Secrets (`external`), or the service CA of OpenShift for the webhook, and the controller for the others (`serviceCa`).',
        'builtin',
        'certManager',
      ),
      'certManager.issuerRef': object(
        'Issuer of archwright’s CA. Empty: a self-signed CA.',
        {},
        { kind: 'ClusterIssuer', name: 'corp' },
      ),
      'certManager.duration': text('Validity of certificates.', '2160h', '720h'),
      'certManager.renewBefore': text('Renewal time before expiry.', '720h', '240h'),
    }),
  },
  {
    title: 'Custom resources, access and other objects',
    values: valuesOf('', {
      'crds.install': on('Installs the CustomResourceDefinitions.'),
      'crds.keep': on('Keeps the definitions and the custom resources when the release is uninstalled.'),
      'rbac.create': on('Creates roles and bindings.'),
      'rbac.aggregate': on('Adds rights on the custom resources to the cluster roles view, edit and admin.'),
      'rbac.pullSecrets': oneOf('cluster', 'namespaces', 'none')(
        'Where archwright may read pull secrets and service accounts: in the whole cluster, only in `rbac.pullSecretNamespaces`, or nowhere. ' +
          'Images that need other pull secrets are unknown.',
        'cluster',
        'none',
      ),
      'rbac.pullSecretNamespaces': texts('Namespaces for `rbac.pullSecrets: namespaces`.', [], ['shop']),
      'priorityClass.create': on('Creates the default priority class of the chart’s pods.'),
      'priorityClass.value': shaped(
        { type: 'integer', maximum: 1_000_000_000 },
        { help: 'Value of that priority class.', default: 900_000_000, example: 1000 },
      ),
      'protection.enabled': on(
        'Adds a ValidatingAdmissionPolicy that allows only archwright to change its annotations or remove its gate.',
      ),
      'protection.exemptGroups': texts(
        'Groups that are also allowed, as are users who may delete the policy’s binding.',
        ['system:masters'],
        ['oncall'],
      ),
      'protection.exemptUsers': texts(
        'Users that are also allowed.',
        [],
        ['system:serviceaccount:backup:restore'],
      ),
      'protection.ownAccounts': on(
        'Adds ValidatingAdmissionPolicies that limit archwright’s own service accounts to the fields that it writes: in ' +
          'pods its gate, affinity, nodeSelector, tolerations and its annotations; in nodes its taint, labels and annotations.',
      ),
      'networkPolicy.enabled': on(
        'Limits traffic to the ports of webhook, controller, and agents without the host network.',
      ),
      'networkPolicy.webhookFrom': objects(
        'NetworkPolicy peers that may reach the port of the webhook, in addition to the controller: the addresses of the API servers, ' +
          'as pods see them. Empty: all.',
        [],
        [{ ipBlock: { cidr: '10.0.0.0/28' } }],
      ),
      'networkPolicy.metricsFrom': objects(
        'NetworkPolicy peers that may reach the ports for metrics and health. Empty: all.',
        [],
        [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
      ),
      'networkPolicy.egress': objects(
        'Egress rules of webhook, controller and report. Empty: no limits.',
        [],
        [{ ports: [{ port: 443, protocol: 'TCP' }] }],
      ),
      'flowSchema.enabled': off(
        'Adds a FlowSchema and a priority level for archwright’s requests to the API server.',
      ),
      'flowSchema.nominalConcurrencyShares': shaped(
        { type: 'integer', minimum: 1 },
        { help: 'Concurrency shares of that priority level.', default: 20, example: 30 },
      ),
      'flowSchema.matchingPrecedence': shaped(
        { type: 'integer', minimum: 1, maximum: 10_000 },
        { help: 'Precedence of the FlowSchema.', default: 1000, example: 900 },
      ),
      extraObjects: shaped(
        { type: 'array', items: { type: ['object', 'string'] } },
        {
          help:
            'Additional objects, as YAML or as strings; both are templates. archwright’s custom resources need definitions that are ' +
            'already installed.',
          default: [],
          example: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'extra' } }],
        },
      ),
    }),
  },
];

export const labels: Section = {
  title: 'Labels and annotations',
  values: [
    ...valuesOf('', {
      commonLabels: textMap('Labels of every object.', {}, { team: 'platform' }),
      commonAnnotations: textMap('Annotations of every object.', {}, { owner: 'platform' }),
    }),
    ...valuesOf('', perKind()),
  ],
};
