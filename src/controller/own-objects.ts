/**
 * Objects that the controller and `report --publish` create besides Lease and events; `archwright clean` removes them. They have no label or
 * annotation of Helm, so Helm never adopts them.
 */
import type { KubeObject } from '../kube/api/objects.ts';
import { namespacedPath, paths } from '../kube/api/paths.ts';
import type { Configuration } from '../policy/configuration/configuration.ts';

export interface OwnObject {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly path: string;
}

/** On every object that archwright creates. Objects without it belong to others and stay. */
export const ownLabels = { 'app.kubernetes.io/managed-by': 'archwright-controller' } as const;

export function isOwn({ metadata }: KubeObject): boolean {
  return Object.entries(ownLabels).every(([key, value]) => metadata?.labels?.[key] === value);
}

/** Of OpenReports, which a cluster may not have. */
export const openReports = namespacedPath('openreports.io/v1alpha1', 'reports');

/** Field manager of everything that the controller applies. */
export const fieldManager = 'archwright-controller';

/** The Secrets with the webhook's path and the built-in certificates. @param namespace archwright's own */
export function ownSecrets(
  configuration: Pick<
    Configuration,
    | 'certificates'
    | 'caSecret'
    | 'webhookTlsSecret'
    | 'agentTlsSecret'
    | 'webhookClientTlsSecret'
    | 'controllerClientTlsSecret'
    | 'webhookPathSecret'
  >,
  namespace: string,
): readonly OwnObject[] {
  const { webhookPathSecret } = configuration;
  const ofPath = webhookPathSecret === undefined ? [] : [webhookPathSecret];
  const names = [
    ...ofPath,
    ...(configuration.certificates === 'builtin' ? certificateSecrets(configuration) : []),
  ];
  return names.map((name) => ({ kind: 'Secret', namespace, name, path: paths.secrets(namespace, name) }));
}

function certificateSecrets(configuration: Parameters<typeof ownSecrets>[0]): readonly string[] {
  return [
    configuration.webhookTlsSecret,
    configuration.agentTlsSecret,
    configuration.webhookClientTlsSecret,
    configuration.controllerClientTlsSecret,
    // Last: while it exists, a later run can still recognize what an interrupted one left.
    configuration.caSecret,
  ];
}
