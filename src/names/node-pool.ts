/** Node pools: groups of nodes that are configured alike, by the labels of their provider. */
import { keys } from './keys.ts';

/** A node of several kinds of pools belongs to the first in this list. */
const poolLabels = [
  // Karpenter
  'karpenter.sh/nodepool',
  // EKS
  'eks.amazonaws.com/nodegroup',
  // GKE
  'cloud.google.com/gke-nodepool',
  // AKS, and its older name
  'kubernetes.azure.com/agentpool',
  'agentpool',
] as const;

/** kubeadm, k3s and others set it on nodes of the control plane. */
const controlPlaneLabel = 'node-role.kubernetes.io/control-plane';
const instanceTypeLabel = 'node.kubernetes.io/instance-type';

export function poolOf(labels: Readonly<Record<string, string>>): string {
  for (const key of poolLabels) if (labels[key] !== undefined) return `${key}=${labels[key]}`;
  const architecture = labels[keys.architectureLabel] ?? 'unknown';
  if (labels[controlPlaneLabel] !== undefined) return `control-plane/${architecture}`;
  return `${architecture}/${labels[instanceTypeLabel] ?? 'unknown'}`;
}
