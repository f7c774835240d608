/** Values for all parts: names, image, labels, certificates, credentials, custom resources. */
import type { JsonSchema } from '../../../../src/policy/settings/setting.ts';
import { flag, object, objects, oneOf, shaped, text, textMap, texts, valuesOf, type Described, type Section } from '../value.ts';

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
      [`${kind}.labels`, textMap({ help: `Labels of each ${kind}.`, default: {}, example: { tier: 'infra' } })],
      [
        `${kind}.annotations`,
        textMap({ help: `Annotations of each ${kind}.`, default: {}, example: { 'example.com/note': 'hello' } }),
      ],
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
      nameOverride: text({ help: 'Replaces the chart’s name in labels and names.', default: '', example: 'arch' }),
      fullnameOverride: text({ help: 'Prefix of every object’s name.', default: '', example: 'placement' }),
      namespaceOverride: text({
        help: 'Namespace of all objects, for charts with this chart as a dependency. Empty: the namespace of the release.',
        default: '',
        example: 'default',
      }),
      'image.registry': text({ help: 'Registry of the image.', default: 'ghcr.io', example: 'registry.example.com' }),
      'image.repository': text({ help: 'Repository of the image.', default: 'archwright/archwright', example: 'mirror/archwright' }),
      'image.tag': text({ help: 'Tag of the image. Empty: the chart’s version of archwright.', default: '', example: '0.1.1' }),
      'image.digest': text({
        help: 'Digest of the image. It replaces the tag.',
        default: '',
        example: `sha256:${'1'.repeat(64)}`,
      }),
      'image.pullPolicy': oneOf('Always', 'IfNotPresent', 'Never')({
        help: 'Pull policy of the image.',
        default: 'IfNotPresent',
        example: 'Always',
      }),
      'image.architectures': texts({
        help:
          'Architectures of the image. All pods of the chart, including agents, run only on Linux nodes with these architectures. Empty: every Linux node.',
        default: ['amd64', 'arm64'],
        example: ['amd64'],
      }),
      imagePullSecrets: objects({
        help: 'Pull secrets for the image, in the namespace of the release.',
        default: [],
        example: [{ name: 'registry-login' }],
      }),
    }),
  },
  {
    title: 'Global values',
    values: valuesOf('global', {
      imageRegistry: text({ help: 'Replaces `image.registry`.', default: '', example: 'mirror.example.com' }),
      imagePullSecrets: objects({ help: 'Additional pull secrets.', default: [], example: [{ name: 'global-login' }] }),
      commonLabels: textMap({ help: 'Labels of every object.', default: {}, example: { team: 'platform' } }),
      priorityClassName: text({
        help: 'Default priority class of every pod.',
        default: '',
        example: 'system-cluster-critical',
      }),
      nodeSelector: textMap({
        help: 'Default node selector of webhook, controller and Jobs.',
        default: {},
        example: { pool: 'system' },
      }),
      tolerations: objects({
        help: 'Additional tolerations of webhook, controller and Jobs.',
        default: [],
        example: [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
      }),
    }),
  },
  {
    title: 'Registry credentials',
    values: valuesOf('', {
      registryCredentials: shaped(
        { type: 'object', additionalProperties: credential },
        {
          help:
            'Credentials by registry, mounted as `creds/<registry>.toml`: either `user` and `secret`, or an `existingSecret` with ' +
            'such a file under `key` (default: `<registry>.toml`; a port is written `_5000_`).',
          default: {},
          example: { 'ghcr.io': { existingSecret: 'ghcr-login', key: 'ghcr.io.toml' } },
        },
      ),
      dockerConfigSecretName: text({
        help: 'Secret of type `kubernetes.io/dockerconfigjson` in the namespace of the release, used like `registryCredentials`.',
        default: '',
        example: 'registry-login',
      }),
    }),
  },
  {
    title: 'Certificates',
    values: valuesOf('', {
      certificates: oneOf('builtin', 'certManager', 'external')({
        help:
          'Issuer of the certificates: the controller (`builtin`), cert-manager with objects of this chart (`certManager`), or you: ' +
          'you write the Secrets (`external`).',
        default: 'builtin',
        example: 'certManager',
      }),
      'certManager.issuerRef': object({
        help: 'Issuer of archwright’s CA. Empty: a self-signed CA.',
        default: {},
        example: { kind: 'ClusterIssuer', name: 'corp' },
      }),
      'certManager.duration': text({ help: 'Validity of certificates.', default: '2160h', example: '720h' }),
      'certManager.renewBefore': text({ help: 'Renewal time before expiry.', default: '720h', example: '240h' }),
    }),
  },
  {
    title: 'Custom resources, access and other objects',
    values: valuesOf('', {
      'crds.install': flag({ help: 'Installs the CustomResourceDefinitions.', default: true, example: false }),
      'crds.keep': flag({
        help: 'Keeps the definitions and the custom resources when the release is uninstalled.',
        default: true,
        example: false,
      }),
      'rbac.create': flag({ help: 'Creates roles and bindings.', default: true, example: false }),
      'rbac.aggregate': flag({
        help: 'Adds rights on the custom resources to the cluster roles view, edit and admin.',
        default: true,
        example: false,
      }),
      'rbac.pullSecrets': oneOf('cluster', 'namespaces', 'none')({
        help:
          'Where archwright may read pull secrets and service accounts: in the whole cluster, only in `rbac.pullSecretNamespaces`, or nowhere. ' +
          'Images that need other pull secrets are unknown.',
        default: 'cluster',
        example: 'none',
      }),
      'rbac.pullSecretNamespaces': texts({
        help: 'Namespaces for `rbac.pullSecrets: namespaces`.',
        default: [],
        example: ['shop'],
      }),
      'priorityClass.create': flag({
        help: 'Creates the default priority class of the chart’s pods.',
        default: true,
        example: false,
      }),
      'priorityClass.value': shaped(
        { type: 'integer', maximum: 1_000_000_000 },
        { help: 'Value of that priority class.', default: 900_000_000, example: 1000 },
      ),
      'protection.enabled': flag({
        help: 'Adds a ValidatingAdmissionPolicy that allows only archwright to change its annotation or remove its gate.',
        default: true,
        example: false,
      }),
      'protection.exemptGroups': texts({
        help: 'Groups that are also allowed, as are users who may delete the policy’s binding.',
        default: ['system:masters'],
        example: ['oncall'],
      }),
      'protection.exemptUsers': texts({
        help: 'Users that are also allowed.',
        default: [],
        example: ['system:serviceaccount:backup:restore'],
      }),
      'protection.ownAccounts': flag({
        help:
          'Adds ValidatingAdmissionPolicies that limit archwright’s own service accounts to the fields that it writes: in ' +
          'pods its gate, affinity, nodeSelector, tolerations and its annotations; in nodes its taint, labels and annotations.',
        default: true,
        example: false,
      }),
      'networkPolicy.enabled': flag({
        help: 'Limits traffic to the ports of webhook, controller, and agents without the host network.',
        default: true,
        example: false,
      }),
      'networkPolicy.webhookFrom': objects({
        help:
          'NetworkPolicy peers that may reach the port of the webhook, in addition to the controller: the addresses of the API servers, ' +
          'as pods see them. Empty: all.',
        default: [],
        example: [{ ipBlock: { cidr: '10.0.0.0/28' } }],
      }),
      'networkPolicy.metricsFrom': objects({
        help: 'NetworkPolicy peers that may reach the ports for metrics and health. Empty: all.',
        default: [],
        example: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
      }),
      'networkPolicy.egress': objects({
        help: 'Egress rules of webhook, controller and report. Empty: no limits.',
        default: [],
        example: [{ ports: [{ port: 443, protocol: 'TCP' }] }],
      }),
      'flowSchema.enabled': flag({
        help: 'Adds a FlowSchema and a priority level for archwright’s requests to the API server.',
        default: false,
        example: true,
      }),
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
      commonLabels: textMap({ help: 'Labels of every object.', default: {}, example: { team: 'platform' } }),
      commonAnnotations: textMap({ help: 'Annotations of every object.', default: {}, example: { owner: 'platform' } }),
    }),
    ...valuesOf('', perKind()),
  ],
};
