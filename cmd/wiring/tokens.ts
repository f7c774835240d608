/** Service account tokens for credential provider plugins, if `serviceAccountTokens` allows them. */
import type { ServiceAccountTokens } from '../../daemon/kubelet/provider/service-account.ts';
import { createServiceAccountTokens } from '../../daemon/kubelet/provider/tokens.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { openKubernetes, type Kubernetes } from './kubernetes.ts';

export interface OpenTokens {
  readonly tokens?: ServiceAccountTokens;
  /** Why there are no tokens. */
  readonly noTokens?: string;
  readonly close: () => void;
}

/**
 * Connects to the cluster if `serviceAccountTokens` is set. A failed connection is reported, not thrown: the agent still
 * has its other sources.
 * @param owner `user`: outside a pod, the person's own kubeconfig is the default; `node`: there is no default
 */
export async function openTokens(
  configuration: Configuration,
  env: Readonly<Record<string, string | undefined>>,
  owner: 'user' | 'node',
): Promise<OpenTokens> {
  if (!configuration.serviceAccountTokens) return without('serviceAccountTokens is off');
  let kubernetes: Kubernetes | undefined;
  try {
    const fallBack = owner === 'user' ? 'own kubeconfig' : 'none';
    kubernetes = await openKubernetes(configuration, { io: { env } }, fallBack);
  } catch (error) {
    return without(
      `cannot connect to the cluster: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (kubernetes === undefined)
    return without('serviceAccountTokens is on, but this is not a pod and no kubeconfig is set');
  const { client } = kubernetes;
  return { tokens: createServiceAccountTokens(client), close: () => client.close() };
}

function without(noTokens: string): OpenTokens {
  return { noTokens, close: () => undefined };
}
