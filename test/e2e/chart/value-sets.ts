/** Sets of values with which the chart renders every object and every field. */
import { chartSections, isSetting } from '../../../scripts/docs/chart/chart.ts';
import type { Value } from '../../../scripts/docs/chart/value.ts';

/** Everything enabled, with the controller's certificates. */
export const everything = {
  certificates: 'builtin',
  failurePolicy: 'Fail',
  namespaceSelector: {
    matchLabels: { team: 'shop' },
    matchExpressions: [{ key: 'tier', operator: 'Exists' }],
  },
  objectSelector: { matchExpressions: [{ key: 'tier', operator: 'In', values: ['web'] }] },
  matchConditions: [{ name: 'not-batch', expression: "object.metadata.namespace != 'batch'" }],
  registryCredentials: {
    'ghcr.io': { existingSecret: 'a' },
    'registry.example.com:5000': { user: 'a', secret: 'b"\\' },
  },
  dockerConfigSecretName: 'login',
  kubeletConfig: { config: '/etc/plugins.yaml', binDir: '/opt/plugins' },
  serviceAccountTokens: true,
  flowSchema: { enabled: true },
  rbac: { pullSecrets: 'namespaces', pullSecretNamespaces: ['default'] },
  networkPolicy: {
    webhookFrom: [{ ipBlock: { cidr: '10.0.0.0/28' } }],
    metricsFrom: [{ podSelector: {} }],
    egress: [{ ports: [{ port: 443, protocol: 'TCP' }] }],
  },
  monitoring: {
    mode: 'ServiceMonitor',
    rules: { enabled: true },
    dashboard: { enabled: true },
    scrapeAnnotations: true,
  },
  webhook: {
    clientCa: '-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n',
    autoscaling: { enabled: true },
    verticalAutoscaling: { enabled: true },
    hostNetwork: true,
  },
  agent: {
    serviceAccountTokenAudiences: ['registry.example.com'],
    readKubeletEnvironment: true,
    stateHostPath: '/var/lib/archwright',
    pools: [
      {
        name: 'plain',
        nodeSelector: { pool: 'plain' },
        readKubeletEnvironment: false,
        hostPaths: ['/etc/containerd', { path: '/etc/pki', type: 'Directory' }],
      },
      {
        name: 'cloud',
        nodeSelector: { pool: 'cloud' },
        config: { kubeletConfig: { config: '/etc/eks/c.json', binDir: '/etc/eks' } },
      },
    ],
  },
  extraObjects: [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'extra' } },
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-text\n',
  ],
};

/** Values that choose between objects: one example hides the objects of the others. */
const choices = new Set([
  'certificates',
  'monitoring.mode',
  'rbac.pullSecrets',
  'registryCredentials',
  'webhook.hostNetwork',
]);

function isChoice({ key, example }: Change): boolean {
  return example === false || choices.has(key);
}

/** Description → values. */
export function valueSets(): Readonly<Record<string, object>> {
  const settings = new Set(
    chartSections().flatMap(({ values }) => values.filter(isSetting).map(({ key }) => key)),
  );
  // Settings only change archwright.toml.
  const all = changes().filter(({ key }) => !settings.has(key));
  const chosen = all.filter(isChoice);
  const examples = all
    .filter((change) => !isChoice(change))
    .reduce<object>(
      (values, { key, example }) => withValue(values, key, example),
      all.reduce<object>((values, { before }) => merged(values, before), {}),
    );
  const sets: Record<string, object> = {
    defaults: {},
    everything,
    'cert-manager': merged(everything, { certificates: 'certManager', monitoring: { mode: 'PodMonitor' } }),
    'the example of each value': examples,
  };
  for (const { key, example, after } of chosen) {
    const what = `${key}: ${JSON.stringify(example)}`;
    sets[what] = after;
    const noReport = key === 'controller.enabled' ? { report: { enabled: false } } : {};
    sets[`the example of each value, and ${what}`] = merged(withValue(examples, key, example), noReport);
  }
  return sets;
}

/** What a value needs to have an effect, by key prefix; the longest wins. Switches need nothing. */
const prerequisites: Readonly<Record<string, object>> = {
  'agent.serviceAccount.create': { agent: { serviceAccount: { name: 'own' } } },
  'agent.serviceAccountTokenAudiences': {
    serviceAccountTokens: true,
    agent: { serviceAccountTokenAudiences: ['other'] },
  },
  'certificate.annotations': { certificates: 'certManager' },
  'issuer.annotations': { certificates: 'certManager' },
  'secret.annotations': { registryCredentials: { 'ghcr.io': { user: 'a', secret: 'b' } } },
  'controller.serviceAccount.create': { controller: { serviceAccount: { name: 'own' } } },
  'controller.enabled': { certificates: 'external' },
  certManager: { certificates: 'certManager' },
  flowSchema: { flowSchema: { enabled: true } },
  'certificate.labels': { certificates: 'certManager' },
  'issuer.labels': { certificates: 'certManager' },
  'secret.labels': { registryCredentials: { 'ghcr.io': { user: 'a', secret: 'b' } } },
  'kubeletConfig.binDir': { kubeletConfig: { config: '/etc/plugins.yaml', binDir: '/etc/plugins' } },
  'kubeletConfig.config': { kubeletConfig: { config: '/etc/plugins.yaml', binDir: '/etc/plugins' } },
  'kubeletConfig.configDir': { kubeletConfig: { configDir: '/etc/plugins', binDir: '/etc/plugins' } },
  'monitoring.interval': { monitoring: { mode: 'PodMonitor' } },
  'monitoring.labels': { monitoring: { mode: 'PodMonitor' } },
  'monitoring.dashboard': { monitoring: { dashboard: { enabled: true } } },
  'monitoring.rules': { monitoring: { rules: { enabled: true } } },
  'rbac.pullSecretNamespaces': { rbac: { pullSecrets: 'namespaces' } },
  report: { report: { enabled: true } },
  serviceAccountTokens: { agent: { serviceAccountTokenAudiences: ['registry.example.com'] } },
  'webhook.serviceAccount.create': { webhook: { serviceAccount: { name: 'own' } } },
  'webhook.autoscaling': { webhook: { autoscaling: { enabled: true } } },
  'webhook.verticalAutoscaling': { webhook: { verticalAutoscaling: { enabled: true } } },
};

export interface Change {
  readonly key: string;
  readonly before: object;
  readonly after: object;
  readonly example: unknown;
}

export function changes(): readonly Change[] {
  return chartSections().flatMap(({ values }) => values.map(changeOf));
}

function changeOf({ key, example }: Value): Change {
  const found = Object.keys(prerequisites)
    .filter((prefix) => key === prefix || (key.startsWith(`${prefix}.`) && !key.endsWith('.enabled')))
    .sort((a, b) => b.length - a.length)[0];
  const before = found === undefined ? {} : (prerequisites[found] ?? {});
  return { key, before, after: merged(before, nested(key.split('.'), example)), example };
}

export function withValue(values: object, key: string, value: unknown): object {
  const [first = '', ...rest] = key.split('.');
  const below = (values as Readonly<Record<string, unknown>>)[first];
  const inner = isPlain(below) ? below : {};
  return { ...values, [first]: rest.length === 0 ? value : withValue(inner, rest.join('.'), value) };
}

function nested(steps: readonly string[], value: unknown): object {
  const [first = '', ...rest] = steps;
  return { [first]: rest.length === 0 ? value : nested(rest, value) };
}

/** Deep merge: the second value wins; lists are replaced. */
export function merged(a: object, b: object): object {
  const result: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const before = result[key];
    result[key] = isPlain(before) && isPlain(value) ? merged(before, value) : value;
  }
  return result;
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
