/** cert-manager's controller outside of a cluster, and renewals of certificates. */
import { KubeError } from '../../../../src/kube/api/errors.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { certManagerProgram, certManagerDefinitions } from '../../programs/definitions.ts';
import { define } from '../control-plane/definitions.ts';
import { type Cluster } from '../harness.ts';
import { startProcess, type Running } from '../control-plane/processes.ts';
import { hasCondition, type Condition } from '../control-plane/watch.ts';

/** Namespace of the Secrets of ClusterIssuers. */
export const certManagerNamespace = 'cert-manager';

/** Runs it until the cluster ends, with its definitions and its namespace. */
export async function startCertManager(cluster: Cluster): Promise<Running> {
  const program = certManagerProgram();
  for (const text of certManagerDefinitions()) await define(cluster, text);
  await cluster.createNamespace(certManagerNamespace);
  const user = { cn: 'cert-manager', group: 'system:masters' };
  const kubeconfig = await cluster.identities.kubeconfig(user, cluster.server);
  const running = startProcess({
    name: 'cert-manager',
    program,
    args: [`--kubeconfig=${kubeconfig}`, `--cluster-resource-namespace=${certManagerNamespace}`],
    env: { HOME: '/nonexistent' },
    logs: cluster.logs,
  });
  cluster.onStop(() => running.stop());
  return running;
}

export interface Certificate extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly (Condition & { readonly observedGeneration?: number })[];
    readonly revision?: number;
  };
}

const certificates = (namespace: string, name: string): string =>
  `/apis/cert-manager.io/v1/namespaces/${namespace}/certificates/${name}`;

/** Renews a certificate, as `cmctl renew` does, and waits for it. @param namespace of the Certificate */
export async function renew(cluster: Cluster, namespace: string, name: string): Promise<void> {
  for (;;) {
    const { metadata, status } = await untilIssued(cluster, namespace, name, 0);
    const issuing = {
      type: 'Issuing',
      status: 'True',
      reason: 'ManuallyTriggered',
      message: 'by a test',
      lastTransitionTime: new Date().toISOString(),
      observedGeneration: metadata?.generation,
    };
    const conditions = [...(status?.conditions ?? []).filter(({ type }) => type !== 'Issuing'), issuing];
    const body = { metadata: { resourceVersion: metadata?.resourceVersion }, status: { conditions } };
    const path = `${certificates(namespace, name)}/status`;
    try {
      await cluster.merge(path, body);
    } catch (error) {
      // cert-manager wrote in between.
      if (error instanceof KubeError && error.code === 'conflict') continue;
      throw error;
    }
    await untilIssued(cluster, namespace, name, status?.revision ?? 0);
    return;
  }
}

/** Waits until the current Certificate has a certificate with a revision above `after`. The first is 1. */
export async function untilIssued(
  cluster: Cluster,
  namespace: string,
  name: string,
  after: number,
): Promise<Certificate> {
  const issued = await cluster.waitFor<Certificate>(certificates(namespace, name), (now) => {
    if (now === undefined) return false;
    const ready = now.status?.conditions?.find(({ type }) => type === 'Ready');
    return (
      (now.status?.revision ?? 0) > after &&
      hasCondition(now, 'Ready') &&
      ready?.observedGeneration === now.metadata?.generation &&
      !hasCondition(now, 'Issuing')
    );
  });
  if (issued === undefined) throw new TypeError(`there is no Certificate ${name}`);
  return issued;
}
