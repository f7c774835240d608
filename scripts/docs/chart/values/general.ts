/** Values for all parts: names, image, labels, certificates, credentials, custom resources. */
import type { JsonSchema } from '../../../../src/policy/settings/setting.ts';
import { flag, object, objects, oneOf, shaped, text, textMap, texts, valuesOf, type Described, type Section } from '../value.ts';

/** Kinds of objects that can get labels and annotations of their own. */
const labeled = [
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
    labeled.flatMap((kind) => [
      [`${kind}.labels`, textMap({ help: `Labels of each ${kind}.`, default: {}, example: { tier: 'infra' } })],
      [
        `${kind}.annotations`,
        textMap({ help: `Annotations of each ${kind}.`, default: {}, example: { 'example.com/note': 'hello' } }),
      ],
    ]),
  );
}

/** Secrets are named by DNS subdomains, their keys by a smaller set of characters than files. */
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
      nameOverride: text({ help: 'Name in place of the chart’s in labels and names.', default: '', example: 'arch' }),
      fullnameOverride: text({ help: 'Beginning of the name of every object.', default: '', example: 'placement' }),
      'image.registry': text({ help: 'Registry of the image.', default: 'ghcr.io', example: 'registry.example.com' }),
      'image.repository': text({ help: 'Repository of the image.', default: 'archwright/archwright', example: 'mirror/archwright' }),
      'image.tag': text({ help: 'Tag of the image; empty: the version of the chart’s program.', default: '', example: '0.1.1' }),
      'image.digest': text({
        help: 'Digest of the image, which then counts instead of the tag.',
        default: '',
        example: `sha256:${'1'.repeat(64)}`,
      }),
      'image.pullPolicy': oneOf('Always', 'IfNotPresent', 'Never')({
        help: 'When nodes pull the image.',
        default: 'IfNotPresent',
        example: 'Always',
      }),
      'image.architectures': texts({
        help:
          'Architectures that the image has: all pods of the chart go to Linux nodes of these only, agents too. Empty: to every Linux node.',
        default: ['amd64', 'arm64'],
        example: ['amd64'],
      }),
      imagePullSecrets: objects({
        help: 'Pull secrets for the image, in the release’s namespace.',
        default: [],
        example: [{ name: 'registry-login' }],
      }),
    }),
  },
  {
    title: 'Global values',
    values: valuesOf('global', {
      imageRegistry: text({ help: 'Registry in place of `image.registry`.', default: '', example: 'mirror.example.com' }),
      imagePullSecrets: objects({ help: 'Further pull secrets.', default: [], example: [{ name: 'global-login' }] }),
      commonLabels: textMap({ help: 'Labels of every object.', default: {}, example: { team: 'platform' } }),
      priorityClassName: text({
        help: 'Priority class of every pod that names none of its own.',
        default: '',
        example: 'system-cluster-critical',
      }),
      nodeSelector: textMap({
        help: 'Node selector of webhook, controller and Jobs where they have none of their own.',
        default: {},
        example: { pool: 'system' },
      }),
      tolerations: objects({
        help: 'Further tolerations of webhook, controller and Jobs.',
        default: [],
        example: [{ key: 'CriticalAddonsOnly', operator: 'Exists' }],
      }),
    }),
  },
  {
    title: 'Labels and annotations',
    values: [
      ...valuesOf('', {
        commonLabels: textMap({ help: 'Labels of every object.', default: {}, example: { team: 'platform' } }),
        commonAnnotations: textMap({ help: 'Annotations of every object.', default: {}, example: { owner: 'platform' } }),
      }),
      ...valuesOf('', perKind()),
    ],
  },
  {
    title: 'Registry credentials',
    values: valuesOf('', {
      registryCredentials: shaped(
        { type: 'object', additionalProperties: credential },
        {
          help:
            'Credentials by registry, each mounted as `creds/<registry>.toml`: given here by `user` and `secret`, or in an ' +
            '`existingSecret`, whose `key` (default: `<registry>.toml`, a port as `_5000_`) holds such a file.',
          default: {},
          example: { 'ghcr.io': { existingSecret: 'ghcr-login', key: 'ghcr.io.toml' } },
        },
      ),
      dockerConfigSecretName: text({
        help: 'Secret of type `kubernetes.io/dockerconfigjson` in the release’s namespace whose credentials are used like those of `registryCredentials`.',
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
          'Who makes the certificates: the controller (`builtin`), cert-manager by objects of this chart (`certManager`), or somebody ' +
          'else who writes the Secrets (`external`).',
        default: 'builtin',
        example: 'certManager',
      }),
      'certManager.issuerRef': object({
        help: 'Issuer that signs the CA of archwright; empty: one that signs itself.',
        default: {},
        example: { kind: 'ClusterIssuer', name: 'corp' },
      }),
      'certManager.duration': text({ help: 'How long certificates are valid.', default: '2160h', example: '720h' }),
      'certManager.renewBefore': text({ help: 'How long before their end they are renewed.', default: '720h', example: '240h' }),
    }),
  },
  {
    title: 'Custom resources, access and other objects',
    values: valuesOf('', {
      'crds.install': flag({ help: 'Whether the chart installs its CustomResourceDefinitions.', default: true, example: false }),
      'crds.keep': flag({
        help: 'Whether they, and with them the custom resources, stay when the release is uninstalled.',
        default: false,
        example: true,
      }),
      'rbac.create': flag({ help: 'Whether roles and bindings are made.', default: true, example: false }),
      'rbac.aggregate': flag({
        help: 'Whether the roles view, edit and admin of the cluster get rights on the custom resources.',
        default: true,
        example: false,
      }),
      'rbac.pullSecrets': oneOf('cluster', 'namespaces', 'none')({
        help:
          'Where pull secrets and service accounts may be read: in the whole cluster, in `rbac.pullSecretNamespaces` only, or nowhere. ' +
          'Images that only other pull secrets open then count as unknown.',
        default: 'cluster',
        example: 'none',
      }),
      'rbac.pullSecretNamespaces': texts({
        help: 'Namespaces for `rbac.pullSecrets: namespaces`.',
        default: [],
        example: ['shop'],
      }),
      'priorityClass.create': flag({
        help: 'Whether a priority class is made for the pods of the chart that have none of their own.',
        default: true,
        example: false,
      }),
      'priorityClass.value': shaped(
        { type: 'integer', maximum: 1_000_000_000 },
        { help: 'Its value.', default: 900_000_000, example: 1000 },
      ),
      'protection.enabled': flag({
        help: 'Whether a ValidatingAdmissionPolicy keeps others from changing archwright’s annotation and taking away its gate on pods.',
        default: true,
        example: false,
      }),
      'protection.exemptGroups': texts({
        help: 'Groups that may do so, besides archwright itself and whoever may delete the binding of the policy.',
        default: ['system:masters'],
        example: ['oncall'],
      }),
      'protection.exemptUsers': texts({
        help: 'Users that may do so, besides archwright itself.',
        default: [],
        example: ['system:serviceaccount:backup:restore'],
      }),
      'networkPolicy.enabled': flag({
        help: 'Whether traffic to webhook, controller, and agents outside of the network of their node is limited to their ports.',
        default: true,
        example: false,
      }),
      'networkPolicy.metricsFrom': objects({
        help: 'Who may reach the ports for metrics and health, as peers of a NetworkPolicy; empty: everybody.',
        default: [],
        example: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
      }),
      'networkPolicy.egress': objects({
        help: 'Rules for traffic from webhook and controller; empty: not limited.',
        default: [],
        example: [{ ports: [{ port: 443, protocol: 'TCP' }] }],
      }),
      'flowSchema.enabled': flag({
        help: 'Whether requests of archwright to the API server get a FlowSchema and a priority level of their own.',
        default: false,
        example: true,
      }),
      'flowSchema.nominalConcurrencyShares': shaped(
        { type: 'integer', minimum: 1 },
        { help: 'Shares of that priority level.', default: 20, example: 30 },
      ),
      'flowSchema.matchingPrecedence': shaped(
        { type: 'integer', minimum: 1, maximum: 10_000 },
        { help: 'Precedence of the FlowSchema.', default: 1000, example: 900 },
      ),
      extraObjects: shaped(
        { type: 'array', items: { type: ['object', 'string'] } },
        {
          help:
            'Further objects, as YAML or as texts; both are templates. Custom resources of archwright only after the first install, which ' +
            'brings their definitions.',
          default: [],
          example: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'extra' } }],
        },
      ),
    }),
  },
];
