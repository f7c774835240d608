/** Other values that a value needs to have an effect: `certManager.duration` needs cert-manager. */
import { chartSections } from '../../../scripts/docs/chart/chart.ts';
import type { Value } from '../../../scripts/docs/chart/value.ts';

/** By the beginning of the key; the longest match counts. A switch (`…enabled`) needs nothing. */
const together: Readonly<Record<string, object>> = {
  'agent.serviceAccountTokenAudiences': {
    serviceAccountTokens: true,
    agent: { serviceAccountTokenAudiences: ['other'] },
  },
  'certificate.annotations': { certificates: 'certManager' },
  'issuer.annotations': { certificates: 'certManager' },
  'secret.annotations': { registryCredentials: { 'ghcr.io': { user: 'a', secret: 'b' } } },
  certManager: { certificates: 'certManager' },
  flowSchema: { flowSchema: { enabled: true } },
  'certificate.labels': { certificates: 'certManager' },
  'issuer.labels': { certificates: 'certManager' },
  'secret.labels': { registryCredentials: { 'ghcr.io': { user: 'a', secret: 'b' } } },
  'monitoring.interval': { monitoring: { mode: 'PodMonitor' } },
  'monitoring.labels': { monitoring: { mode: 'PodMonitor' } },
  'monitoring.dashboard': { monitoring: { dashboard: { enabled: true } } },
  'monitoring.rules': { monitoring: { rules: { enabled: true } } },
  'rbac.pullSecretNamespaces': { rbac: { pullSecrets: 'namespaces' } },
  serviceAccountTokens: { agent: { serviceAccountTokenAudiences: ['registry.example.com'] } },
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
  const found = Object.keys(together)
    .filter((prefix) => key === prefix || (key.startsWith(`${prefix}.`) && !key.endsWith('.enabled')))
    .sort((a, b) => b.length - a.length)[0];
  const before = found === undefined ? {} : (together[found] ?? {});
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
