/**
 * What the controller creates in the cluster besides its Lease and events, so that leaving can remove it. The chart knows
 * nothing of these objects: they carry no label or annotation of Helm's, so Helm never takes them for its own.
 */
import { paths } from '../kube/api/paths.ts';
import type { Configuration } from '../policy/configuration/configuration.ts';

export interface OwnObject {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** API path. */
  readonly path: string;
}

/** On every object that the controller creates; what lacks it was put there by somebody else and stays. */
export const ownLabels = { 'app.kubernetes.io/managed-by': 'archwright-controller' } as const;

/** Field manager of everything that the controller applies. */
export const fieldManager = 'archwright-controller';

/**
 * The Secrets of the built-in certificates; none where others make them.
 * @param namespace archwright's own
 */
export function ownSecrets(
  configuration: Pick<
    Configuration,
    | 'certificates'
    | 'caSecret'
    | 'webhookTlsSecret'
    | 'agentTlsSecret'
    | 'webhookClientTlsSecret'
    | 'controllerClientTlsSecret'
  >,
  namespace: string,
): readonly OwnObject[] {
  if (configuration.certificates !== 'builtin') return [];
  const names = [
    configuration.webhookTlsSecret,
    configuration.agentTlsSecret,
    configuration.webhookClientTlsSecret,
    configuration.controllerClientTlsSecret,
    // Last: while it is there, what a run that was interrupted has left can still be told from others' work.
    configuration.caSecret,
  ];
  return names.map((name) => ({ kind: 'Secret', namespace, name, path: paths.secrets(namespace, name) }));
}
