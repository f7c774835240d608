/**
 * The service account of a pod: a credential provider plugin may return credentials for pods of this service account only
 * (KEP-4412). Results of those credentials are not shared with other pods.
 */

export interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

/** A DNS label, RFC 1123: `namespace/name` is unambiguous. */
const namespacePattern = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** A DNS subdomain (kubernetes pkg/apis/core/validation `ValidateServiceAccountName`). */
const namePattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const maxNameLength = 253;

/** The account of a pod that names none (kubernetes plugin/pkg/admission/serviceaccount). */
const defaultName = 'default';

/** Whether a cluster can have a service account of this name. */
export function isServiceAccountName({ namespace, name }: ServiceAccountName): boolean {
  return namespacePattern.test(namespace) && name.length <= maxNameLength && namePattern.test(name);
}

/**
 * The service account that a pod will have.
 * @param name `spec.serviceAccountName`; without one, the namespace's default account
 * @returns undefined if no cluster can have it; such a pod is never created
 */
export function serviceAccountOf(namespace: string, name?: string): ServiceAccountName | undefined {
  const account = { namespace, name: name === undefined || name === '' ? defaultName : name };
  return isServiceAccountName(account) ? account : undefined;
}
