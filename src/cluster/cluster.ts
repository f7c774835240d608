/**
 * The cluster state that a decision needs, for webhook and controller. `connect.ts` implements it for a real cluster;
 * `pull-secrets.ts` and `facts-of-pod.ts` go from a pod to the facts of its images.
 *
 * Labels and architectures come from watches and are in memory. Secrets and service accounts are read by name, and only if an
 * image is unknown without them.
 */
import type { Secret } from '../kube/api/objects.ts';

export interface Cluster {
  /** Labels of a namespace; empty if it is unknown. */
  namespaceLabels(namespace: string): Readonly<Record<string, string>>;
  /** `kubernetes.io/arch` of a node. */
  nodeArchitecture(node: string): string | undefined;
  /** `kubernetes.io/hostname` of a node; `undefined` if it has none or is unknown. */
  nodeHostname(node: string): string | undefined;
  /** A Secret by name, or `undefined` if it does not exist or cannot be read. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Names of the pull secrets of a service account, for templates that admission has not completed. */
  serviceAccountPullSecrets(namespace: string, name: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Resolves when the watches have their first answer. */
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}
