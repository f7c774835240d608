/**
 * Credential provider plugins, run exactly as the kubelet of this node runs them (KEP-2133, KEP-4412).
 *
 * `CredentialProviderConfig` files name programs and the images of each. For a matching image, the program gets a request of one line
 * of JSON. It responds with credentials by key, how long they may be cached, and for which images:
 *
 *     source.ts           all providers, their answers in one keyring; live configuration
 *       setup.ts          read-config.ts → decode-config.ts → validate-config.ts, state of the programs
 *       provider.ts       one provider: match, token, cache, single flight, back-off
 *         service-account.ts, tokens.ts  token and annotations for `tokenAttributes`
 *         cache.ts, cache-key.ts
 *         execute.ts      request.ts → run.ts → response.ts
 *           binary.ts     path of the program, and whether it may run
 *           environment.ts  variables
 *
 * Plugins run with the agent's rights. So only the node's own configuration chooses programs, and only programs that nobody but root can
 * write may run. Plugins do not get the agent's environment.
 */

/** One provider of a `CredentialProviderConfig` of any version. */
export interface ProviderConfig {
  /** File name in the directory of plugins. */
  readonly name: string;
  readonly matchImages: readonly string[];
  /** Milliseconds. Validation requires it. */
  readonly defaultCacheDurationMs?: number | undefined;
  /** Version of requests and responses. */
  readonly apiVersion: string;
  readonly args?: readonly string[] | undefined;
  readonly env?: readonly EnvironmentVariable[] | undefined;
  readonly tokenAttributes?: TokenAttributes | undefined;
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value: string;
}

/** The plugin needs a token of the pod's service account. */
export interface TokenAttributes {
  readonly serviceAccountTokenAudience: string;
  /** `ServiceAccount` or `Token` if valid. */
  readonly cacheType: string;
  readonly requireServiceAccount?: boolean | undefined;
  readonly requiredServiceAccountAnnotationKeys?: readonly string[] | undefined;
  readonly optionalServiceAccountAnnotationKeys?: readonly string[] | undefined;
}

const group = 'credentialprovider.kubelet.k8s.io';

/** Versions of requests and responses, in the kubelet's order. */
export const execApiVersions = [`${group}/v1`, `${group}/v1alpha1`, `${group}/v1beta1`] as const;

/** The only version with service account tokens. */
export const tokenApiVersion = `${group}/v1`;

/** Why a configuration cannot be used, in the kubelet's words if possible. Quotes no value of a variable. */
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
