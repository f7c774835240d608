/**
 * Credential provider plugins, run exactly as the kubelet of this node runs them (KEP-2133, KEP-4412).
 *
 * `CredentialProviderConfig` files name programs of the node and the images that each is for. For an image that matches,
 * the program is run, gets a request of one line of JSON and answers with credentials under keys, and with how long and
 * for what they may be kept. The way of a question:
 *
 *     source.ts           all providers, their answers in one keyring; live configuration
 *       provider.ts       one provider: match, token, cache, single flight, pause after a failure
 *         service-account.ts  what a provider with `tokenAttributes` needs from the cluster
 *         cache.ts, cache-key.ts
 *         execute.ts      request.ts → run.ts → response.ts
 *           binary.ts     which program, and whether it may be run
 *           environment.ts  with which variables
 *     read-config.ts      files → decode-config.ts → validate-config.ts
 *
 * Programs of the node run with the agent's rights, so nothing but the node's own configuration says which program that is, and
 * none is run that somebody other than root could have written. They get nothing of the agent's own environment.
 */

/** One provider of a `CredentialProviderConfig`, whatever version it was written in. */
export interface ProviderConfig {
  /** File name of the program in the directory of plugins. */
  readonly name: string;
  readonly matchImages: readonly string[];
  /** Milliseconds; absent where the file has none, which validation refuses. */
  readonly defaultCacheDurationMs?: number | undefined;
  /** Version of the protocol with the program. */
  readonly apiVersion: string;
  readonly args?: readonly string[] | undefined;
  readonly env?: readonly EnvironmentVariable[] | undefined;
  readonly tokenAttributes?: TokenAttributes | undefined;
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value: string;
}

/** That and how a program wants a token of the pod's service account. */
export interface TokenAttributes {
  readonly serviceAccountTokenAudience: string;
  /** `ServiceAccount` or `Token`, where valid. */
  readonly cacheType: string;
  readonly requireServiceAccount?: boolean | undefined;
  readonly requiredServiceAccountAnnotationKeys?: readonly string[] | undefined;
  readonly optionalServiceAccountAnnotationKeys?: readonly string[] | undefined;
}

const group = 'credentialprovider.kubelet.k8s.io';

/** The versions of the protocol with programs, in the kubelet's order of listing them. */
export const execApiVersions = [`${group}/v1`, `${group}/v1alpha1`, `${group}/v1beta1`] as const;

/** The only version that carries service account tokens. */
export const tokenApiVersion = `${group}/v1`;

/** Why a configuration cannot be used, in the kubelet's words where it has any. Quotes no value of a variable. */
export class ProviderConfigError extends Error {
  readonly code: 'malformed' | 'invalid' | 'missing';
  readonly temporary = false;
  /** The file or directory. */
  readonly where: string;
  constructor(code: ProviderConfigError['code'], where: string, message: string) {
    super(message);
    this.name = 'ProviderConfigError';
    this.code = code;
    this.where = where;
  }
}
