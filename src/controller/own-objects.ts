/**
 * Objects that the controller and `report --publish` create, besides Lease and events. `archwright clean`
 * removes them. Helm never adopts them, because they lack its labels and annotations.
 */
import { ignoring } from '../kube/api/errors.ts';
import type { KubeObject } from '../kube/api/objects.ts';
import { namespacedPath, paths } from '../kube/api/paths.ts';
import type { Configuration } from '../policy/configuration/configuration.ts';
import { resourceVersion } from '../policy/resources/placement.ts';
import type { Leading } from './leadership/leading.ts';

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

/** Applies the status of a custom resource (server-side), if it still exists. @throws KubeError */
export async function applyStatus(
  { client, signal }: Pick<Leading, 'client' | 'signal'>,
  { kind, path, object }: { readonly kind: string; readonly path: string; readonly object: KubeObject },
  status: object,
): Promise<void> {
  const { name, namespace, uid } = object.metadata ?? {};
  // With the uid, an object that was created again under this name does not get the old one's status.
  const body = { apiVersion: resourceVersion, kind, metadata: { name, namespace, uid }, status };
  const patch = { type: 'apply', body, fieldManager, force: true } as const;
  await ignoring('not-found', client.patch(`${path}/status`, patch, { signal }));
}

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
    // Last: while it exists, a later run can recognize the rest of an interrupted one.
    configuration.caSecret,
  ];
}
