/**
 * Credentials for registries, found by the kubelet's matching rules. A source (the pod's pull secrets,
 * `creds/<registry>.toml`, the kubelet's docker config, …) is a keyring of its own: its keys match a
 * normalized repository (`docker.io/library/nginx`, never a tag or digest), and the most specific key comes
 * first. Results of several sources are concatenated in the order of the sources. This room uses no network
 * and prints no password.
 */
import type { Secret } from '../telemetry/secret.ts';

/** User name and password, as the kubelet passes them to the runtime; either may be empty. */
export interface Credential {
  readonly username: string;
  readonly password: Secret;
  /** The password is an identity token, and there is no user name. */
  readonly isIdentityToken?: true;
}

/**
 * In order of use. `service-account`: a plugin that received a token of the pod's service account; its place
 * is among the other plugins. Such results are not shared with other pods (KEP-4412).
 */
export const credentialSourceNames = [
  'pull-secret',
  'registry-toml',
  'docker-config',
  'credential-provider',
  'service-account',
  'containerd',
  'cri-o',
  'anonymous',
] as const;
export type CredentialSourceName = (typeof credentialSourceNames)[number];

/** A credential under its index key. */
export interface HeldCredential {
  /** The result of `indexKey`, such as `gcr.io/project`. */
  readonly key: string;
  readonly credential: Credential;
  /** File or Secret that holds it. */
  readonly origin: string;
  /** Set if it differs from the keyring's source. */
  readonly source?: CredentialSourceName;
}

/** A credential and why it applies; everything but the credential may be shown to people. */
export interface MatchedCredential {
  readonly credential: Credential;
  readonly source: CredentialSourceName;
  /** The index key that matched, such as `gcr.io/project`. */
  readonly key: string;
  /** The file, Secret (`namespace/name`) or plugin that holds it. */
  readonly origin: string;
  /** Identity of the credential inside this process: equal for equal credentials, reveals nothing. */
  readonly id: string;
}

/** Why a source, or a part of it, is not used. Shown by `inspect --verbose` and logged once. */
export interface SourceProblem extends Problem {
  readonly source: CredentialSourceName;
}

export interface Problem {
  /** File, Secret or plugin. */
  readonly origin: string;
  readonly message: string;
}

/** Repositories are normalized, `domain/path`. */
export interface CredentialSource {
  readonly name: CredentialSourceName;
  /**
   * Best first. @param serviceAccount of the pod @param onProblem why a plugin gave no usable credential
   * @throws CredentialError if the node refuses the pull
   */
  lookup(
    repository: string,
    signal?: AbortSignal,
    serviceAccount?: ServiceAccountName,
    onProblem?: (problem: SourceProblem) => void,
  ): Promise<readonly MatchedCredential[]>;
  problems(): readonly SourceProblem[];
}

/** A source that makes the whole pull fail, as on a node, for example a malformed pull secret. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
  /** The file or Secret at fault. */
  readonly where: string;
  constructor(where: string, message: string) {
    super(message);
    this.where = where;
  }
}

export interface ServiceAccountName {
  readonly namespace: string;
  readonly name: string;
}

/** A DNS label, RFC 1123: `namespace/name` is unambiguous. */
const namespacePattern = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** A DNS subdomain (kubernetes pkg/apis/core/validation `ValidateServiceAccountName`, `ValidateSecretName`). */
const namePattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const maxNameLength = 253;

export function isNamespaceName(name: string): boolean {
  return namespacePattern.test(name);
}

/** Whether a cluster can have a service account or a Secret of this name. */
export function isObjectName({ namespace, name }: ServiceAccountName): boolean {
  return isNamespaceName(namespace) && name.length <= maxNameLength && namePattern.test(name);
}

/**
 * The service account of a pod; `default` if it names none (kubernetes plugin/pkg/admission/serviceaccount).
 * @returns undefined if no cluster can have it; such a pod is never created
 */
export function serviceAccountOf(namespace: string, name?: string): ServiceAccountName | undefined {
  const account = { namespace, name: name || 'default' };
  return isObjectName(account) ? account : undefined;
}
