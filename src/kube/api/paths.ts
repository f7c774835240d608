/** API paths of every kind that archwright reads or writes. */

/** No name: the collection. No namespace: all namespaces. */
export type NamespacedPath = (namespace?: string, name?: string) => string;
export type ClusterPath = (name?: string) => string;

/**
 * The paths of a namespaced kind.
 * @param apiVersion as in objects: `v1`, `apps/v1`
 * @param resource plural, lower case
 */
export function namespacedPath(apiVersion: string, resource: string): NamespacedPath {
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
  return (namespace, name) => {
    const place = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
    const object = name === undefined ? '' : `/${encodeURIComponent(name)}`;
    return `${root}${place}/${resource}${object}`;
  };
}

export function clusterPath(apiVersion: string, resource: string): ClusterPath {
  const path = namespacedPath(apiVersion, resource);
  return (name) => path(undefined, name);
}

/** Kinds of Kubernetes itself. */
export const paths = {
  certificateSigningRequests: clusterPath('certificates.k8s.io/v1', 'certificatesigningrequests'),
  configMaps: namespacedPath('v1', 'configmaps'),
  daemonSets: namespacedPath('apps/v1', 'daemonsets'),
  endpointSlices: namespacedPath('discovery.k8s.io/v1', 'endpointslices'),
  events: namespacedPath('v1', 'events'),
  leases: namespacedPath('coordination.k8s.io/v1', 'leases'),
  mutatingWebhookConfigurations: clusterPath(
    'admissionregistration.k8s.io/v1',
    'mutatingwebhookconfigurations',
  ),
  namespaces: clusterPath('v1', 'namespaces'),
  nodes: clusterPath('v1', 'nodes'),
  persistentVolumeClaims: namespacedPath('v1', 'persistentvolumeclaims'),
  persistentVolumes: clusterPath('v1', 'persistentvolumes'),
  pods: namespacedPath('v1', 'pods'),
  secrets: namespacedPath('v1', 'secrets'),
  serviceAccounts: namespacedPath('v1', 'serviceaccounts'),
  services: namespacedPath('v1', 'services'),
  subjectAccessReviews: clusterPath('authorization.k8s.io/v1', 'subjectaccessreviews'),
  tokenReviews: clusterPath('authentication.k8s.io/v1', 'tokenreviews'),
} as const;
