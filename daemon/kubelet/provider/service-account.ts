/**
 * The token and the annotations of the pod's service account in the request to a plugin with `tokenAttributes` (KEP-4412; kubernetes
 * pkg/credentialprovider/plugin/plugin.go `serviceAccountProvider`).
 */
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';
import { serviceAccountKey, singleFlightKey, tokenHash, type ServiceAccountIdentity } from './cache-key.ts';
import type { Auth } from './cache.ts';
import type { TokenAttributes } from '../config/provider-config.ts';

/** The pod with the image. Before its creation it has no uid, and perhaps no name. */
export interface PodIdentity {
  readonly namespace: string;
  readonly name?: string;
  readonly uid?: string;
  /** Empty for a pod without one, such as a static pod. */
  readonly serviceAccountName: string;
}

/** Service accounts and their tokens, from the cluster. */
export interface ServiceAccountTokens {
  serviceAccount(
    namespace: string,
    name: string,
  ): Promise<{ readonly uid: string; readonly annotations: Readonly<Record<string, string>> }>;
  /**
   * A TokenRequest for the pod's service account, with one audience. The kubelet's is bound to the pod.
   * @param serviceAccountUid excludes a later service account of the same name
   */
  tokenFor(pod: PodIdentity, serviceAccountUid: string, audience: string): Promise<Secret>;
}

/** A service account for one run, with the keys of the run. */
export interface Grant {
  readonly account: ServiceAccountIdentity;
  readonly token: Secret;
  /** The service account's part of cache keys. */
  readonly cacheKey: Buffer;
  readonly singleFlightKey: Buffer;
}

/** The plugin runs with a grant, runs without one, or does not run. */
export type GrantOutcome =
  | { readonly grant: Grant | undefined; readonly refused?: undefined }
  | {
      readonly refused: string;
      /** The API server failed. Otherwise, the service account is not intended for this plugin. */
      readonly isFailure: boolean;
    };

/** Gets the service account and its token. Reasons for a refusal are those of the kubelet's log. */
export async function grantFor(
  attributes: TokenAttributes,
  image: string,
  pod: PodIdentity,
  tokens: ServiceAccountTokens,
): Promise<GrantOutcome> {
  const { namespace, name: podName = '', serviceAccountName: name } = pod;
  if (name === '') {
    return attributes.requireServiceAccount === true
      ? { refused: `Service account name is empty for pod ${namespace}/${podName}`, isFailure: false }
      : { grant: undefined };
  }
  let account: ServiceAccountIdentity;
  try {
    const found = await tokens.serviceAccount(namespace, name);
    const missing = missingAnnotation(attributes, found.annotations);
    if (missing !== undefined) {
      return {
        refused: `Failed to get service account data ${namespace}/${name}: required annotation ${missing} not found`,
        isFailure: false,
      };
    }
    account = {
      namespace,
      name,
      uid: found.uid,
      annotations: selectAnnotations(attributes, found.annotations),
    };
  } catch (error) {
    const refused = `Failed to get service account ${namespace}/${name}: ${messageOf(error)}`;
    return { refused, isFailure: true };
  }
  try {
    const token = await tokens.tokenFor(pod, account.uid, attributes.serviceAccountTokenAudience);
    const hash = tokenHash(token);
    return {
      grant: {
        account,
        token,
        cacheKey: serviceAccountKey(account, attributes.cacheType, hash),
        singleFlightKey: singleFlightKey(image, hash, account.annotations),
      },
    };
  } catch (error) {
    const refused = `Error getting service account token ${namespace}/${name}: ${messageOf(error)}`;
    return { refused, isFailure: true };
  }
}

/**
 * If a plugin returns the token as a password, its cache type must be `Token`. Otherwise a pod would pull with another pod's token.
 * @returns why the response must not be used
 */
export function echoedToken(
  attributes: TokenAttributes,
  image: string,
  token: Secret,
  auth: Auth,
): string | undefined {
  if (attributes.cacheType === 'Token' || reveal(token) === '') return undefined;
  const echoed = [...auth.values()].some(({ password }) => reveal(password) === reveal(token));
  if (!echoed) return undefined;
  return (
    `Credential provider plugin returned the service account token as the password for image "${image}", ` +
    "which is not allowed when service account cache type is not set to 'Token'"
  );
}

function missingAnnotation(
  { requiredServiceAccountAnnotationKeys: keys = [] }: TokenAttributes,
  annotations: Readonly<Record<string, string>>,
): string | undefined {
  return keys.find((key) => !Object.hasOwn(annotations, key));
}

function selectAnnotations(
  attributes: TokenAttributes,
  annotations: Readonly<Record<string, string>>,
): Record<string, string> {
  const keys = [
    ...(attributes.requiredServiceAccountAnnotationKeys ?? []),
    ...(attributes.optionalServiceAccountAnnotationKeys ?? []),
  ];
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
