/** Where tokens of service accounts come from, for credential provider plugins: from the cluster, where a setting allows it. */
import type { ServiceAccountTokens } from '../../daemon/kubelet/provider/service-account.ts';
import { createServiceAccountTokens } from '../../daemon/kubelet/provider/tokens.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { openKubernetes, type Kubernetes } from './kubernetes.ts';

export interface OpenTokens {
  readonly tokens?: ServiceAccountTokens;
  /** Why there are none, for people. */
  readonly noTokens?: string;
  readonly close: () => void;
}

/**
 * Connects to the cluster where `serviceAccountTokens` is set. An agent without a cluster still has other sources, so what is
 * wrong with the connection is a reason to tell and no error.
 * @param whose kubeconfig counts where none is named and this is no pod: that of the person on the command line, or nobody's
 */
export async function openTokens(
  configuration: Configuration,
  env: Readonly<Record<string, string | undefined>>,
  whose: 'user' | 'node',
): Promise<OpenTokens> {
  if (!configuration.serviceAccountTokens) return without('serviceAccountTokens is off');
  let kubernetes: Kubernetes | undefined;
  try {
    const fallBack = whose === 'user' ? 'own kubeconfig' : 'none';
    kubernetes = await openKubernetes(configuration, { io: { env } }, fallBack);
  } catch (error) {
    return without(`the cluster cannot be asked: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (kubernetes === undefined)
    return without('serviceAccountTokens is on, but this is no pod and no kubeconfig is named');
  const { client } = kubernetes;
  return { tokens: createServiceAccountTokens({ client }), close: () => client.close() };
}

function without(noTokens: string): OpenTokens {
  return { noTokens, close: () => undefined };
}
