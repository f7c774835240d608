/** How the kubelet refuses `tokenAttributes` without the feature gate, which is on since Kubernetes 1.34. */
import type { ProviderConfig } from '../../../daemon/kubelet/config/provider-config.ts';

export function gateError(providers: readonly ProviderConfig[]): string | undefined {
  if (providers.every(({ tokenAttributes }) => tokenAttributes === undefined)) return undefined;
  return 'providers.tokenAttributes: Forbidden: tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled';
}
