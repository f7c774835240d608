/** Keys of labels, annotations and gates: archwright's (`arch.example/…`) and Kubernetes' own; names of its objects. */

export const keys = {
  gate: 'arch.example/scheduling-gate',
  /** A label of a pod or namespace; the value `disabled` skips the pod. */
  placement: 'arch.example/placement',
  /** Pod label: one architecture. */
  preferred: 'arch.example/preferred',
  /** Pod annotation: `arm64=80,amd64=20`. */
  preferredWeights: 'arch.example/preferred-weights',
  /** Pod annotation: the decision record, compact and versioned JSON. */
  decision: 'arch.example/decision',
  /** Pod annotation: the decision in one line, for people. */
  summary: 'arch.example/summary',
  /** Pod label: `gated`, `placed`, `fallback` or `pending`. */
  placementState: 'arch.example/placement-state',
  /** Node label: `true` on nodes with an agent, if `agentNodes` is a number. Other values exclude agents. */
  agentNode: 'arch.example/agent',
  /** Node label: `v1` to `v4`, the x86-64 level of its CPU, if `amd64LevelLabels` is set. */
  amd64Level: 'arch.example/amd64-level',
  /** Node annotation or label: what the node costs in an hour, such as `0.0978`. */
  pricePerHour: 'arch.example/price-per-hour',
  /** Pod annotation: the deletion cost that a rollout set. */
  rolloutOrder: 'arch.example/rollout-order',
  deletionCost: 'controller.kubernetes.io/pod-deletion-cost',
  architectureLabel: 'kubernetes.io/arch',
  betaArchitectureLabel: 'beta.kubernetes.io/arch',
  hostnameLabel: 'kubernetes.io/hostname',
} as const;

/** Keys of the Secret with the unguessable part of the webhook's path. */
export const pathSecretKeys = {
  current: 'current',
  /** Accepted too, until the next rotation. */
  previous: 'previous',
  /** RFC 3339, when `current` was made. */
  rotated: 'rotated',
  /** Key of the records' seals; it never changes. */
  recordKey: 'record-key',
} as const;

/**
 * Names of the objects in archwright's own namespace. The chart's roles have the same names.
 * @param name the setting `name`: the chart's full name
 */
export function ownNames({ name }: { readonly name: string }) {
  return {
    lease: `${name}-controller`,
    brokenImages: `${name}-broken-images`,
    drift: `${name}-drift`,
    report: `${name}-report`,
    /** The CA and its key, only for the controller. */
    caSecret: `${name}-ca`,
    webhookTlsSecret: `${name}-webhook-tls`,
    /** Another name than the built-in one: the service CA of OpenShift replaces no Secret of others. */
    serviceCaSecret: `${name}-webhook-serving-cert`,
    agentTlsSecret: `${name}-agent-tls`,
    /** Client certificates for agents. */
    webhookClientTlsSecret: `${name}-webhook-client-tls`,
    controllerClientTlsSecret: `${name}-controller-client-tls`,
  } as const;
}
