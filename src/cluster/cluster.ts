/**
 * What is read of a cluster to decide a pod, by the webhook and by the controller: this file says what is asked, `connect.ts`
 * answers it from a real cluster, `pull-secrets.ts` and `facts-of-pod.ts` go from a pod to the facts of its images.
 *
 * What they want from a cluster, when there is one. Labels and architectures come from watches and are answered
 * from memory; Secrets and service accounts are got by name, only when an image is not known without them.
 */
import type { Secret } from '../kube/api/objects.ts';

export interface Cluster {
  /** Labels of a namespace; empty where it is unknown. */
  namespaceLabels(namespace: string): Readonly<Record<string, string>>;
  /** `kubernetes.io/arch` of a node. */
  nodeArchitecture(node: string): string | undefined;
  /** `kubernetes.io/hostname` of a node; `undefined` where it has none or is not known. */
  nodeHostname(node: string): string | undefined;
  /** A Secret by name, or `undefined` where it does not exist or may not be read. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Names of the pull secrets of a service account, for templates that admission has not completed. */
  serviceAccountPullSecrets(namespace: string, name: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Resolves when the watches have their first answer. */
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}
