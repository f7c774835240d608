/** Sets of values with which the chart renders every object and every field. */
import { chartSections, isSetting } from '../../../scripts/docs/chart/chart.ts';
import { changes, merged, withValue, type Change } from './changes.ts';

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
    metricsFrom: [{ podSelector: {} }],
    egress: [{ ports: [{ port: 443, protocol: 'TCP' }] }],
  },
  monitoring: {
    mode: 'ServiceMonitor',
    rules: { enabled: true },
    dashboard: { enabled: true },
    scrapeAnnotations: true,
  },
  webhook: { autoscaling: { enabled: true }, verticalAutoscaling: { enabled: true }, hostNetwork: true },
  agent: {
    serviceAccountTokenAudiences: ['registry.example.com'],
    readKubeletEnvironment: true,
    stateHostPath: '/var/lib/archwright',
    pools: [
      {
        name: 'plain',
        nodeSelector: { pool: 'plain' },
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
    sets[`the example of each value, and ${what}`] = withValue(examples, key, example);
  }
  return sets;
}
