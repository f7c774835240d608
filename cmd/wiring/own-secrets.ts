/** The webhook's Secrets as files: the controller writes built-in certificates when both run already. */
import { ownNames } from '../../src/names/own-names.ts';
import { keepSecretFiles } from '../../src/cluster/secret-files.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { Checks } from '../../src/serving/health.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Kubernetes } from './kubernetes.ts';

/** @returns `undefined` outside of a pod, and with other issuers: then the directories have the files */
export function keepOwnSecrets(
  configuration: Configuration,
  kubernetes: Kubernetes | undefined,
  namespace: string | undefined,
  webhookPathDir: string | undefined,
  log: Log,
) {
  const { certificates, tlsDir, agentTlsDir, agents, webhookPathSecret } = configuration;
  if (kubernetes?.podNamespace === undefined || namespace === undefined || certificates === 'external')
    return undefined;
  const { client } = kubernetes;
  const keep = (secretName: string | undefined, dir: string | undefined, kind: 'tls' | 'path') =>
    secretName === undefined || dir === undefined
      ? undefined
      : keepSecretFiles({ client, namespace, secretName, dir, kind, log });
  const { webhookTlsSecret, webhookClientTlsSecret } = ownNames(configuration);
  // The service CA writes its Secret for the Service, so the kubelet mounts it.
  const own = certificates === 'serviceCa' ? undefined : keep(webhookTlsSecret, tlsDir, 'tls');
  const others = [
    agents.length === 0 ? undefined : keep(webhookClientTlsSecret, agentTlsDir, 'tls'),
    keep(webhookPathSecret, webhookPathDir, 'path'),
  ];
  let isThere = false;
  const ready = async (signal: AbortSignal): Promise<void> => {
    await own?.ready(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    isThere = !signal.aborted;
  };
  const checks: Checks = {
    certificate: () => (isThere ? undefined : 'the webhook has no certificate yet; the controller writes it'),
  };
  return {
    checks,
    /** Resolves when the webhook has its certificate, or the signal aborts. */
    ready,
    close: async (): Promise<void> => {
      await Promise.all([own, ...others].map(async (each) => each?.close()));
    },
  };
}
