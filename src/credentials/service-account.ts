/**
 * The service account of a pod, as far as credentials go: a credential provider plugin may give credentials that only pods
 * of this service account have (KEP-4412). What they opened is nobody else's business.
 */

export interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

/** A DNS label, RFC 1123; so no two pairs of names look alike when a slash stands between them. */
const namespacePattern = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** A DNS subdomain (kubernetes pkg/apis/core/validation `ValidateServiceAccountName`). */
const namePattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const maxNameLength = 253;

/** What a pod has that names none (kubernetes plugin/pkg/admission/serviceaccount). */
const defaultName = 'default';

/** Whether a cluster can have a service account of this name. */
export function isServiceAccountName({ namespace, name }: ServiceAccountName): boolean {
  return namespacePattern.test(namespace) && name.length <= maxNameLength && namePattern.test(name);
}

/**
 * The service account that a pod will have.
 * @param name `spec.serviceAccountName`; without one, the namespace's default account
 * @returns undefined where no cluster can have it; such a pod is never created
 */
export function serviceAccountOf(namespace: string, name?: string): ServiceAccountName | undefined {
  const account = { namespace, name: name === undefined || name === '' ? defaultName : name };
  return isServiceAccountName(account) ? account : undefined;
}
