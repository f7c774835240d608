/**
 * The token and the annotations of the pod's service account in the request to a plugin with `tokenAttributes` (KEP-4412; kubernetes
 * pkg/credentialprovider/plugin/plugin.go `serviceAccountProvider`).
 */
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';
import {
  serviceAccountKey,
  singleFlightKey,
  tokenHash,
  type ServiceAccountIdentity,
  type Auth,
} from './cache.ts';
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
  const { requiredServiceAccountAnnotationKeys: required = [] } = attributes;
  const { optionalServiceAccountAnnotationKeys: optional = [] } = attributes;
  if (name === '') {
    if (attributes.requireServiceAccount !== true) return { grant: undefined };
    return { refused: `Service account name is empty for pod ${namespace}/${podName}`, isFailure: false };
  }
  let failed = 'Failed to get service account';
  try {
    const found = await tokens.serviceAccount(namespace, name);
    const missing = required.find((key) => !Object.hasOwn(found.annotations, key));
    if (missing !== undefined) {
      const refused = `Failed to get service account data ${namespace}/${name}: required annotation ${missing} not found`;
      return { refused, isFailure: false };
    }
    const annotations = pick(found.annotations, [...required, ...optional]);
    const account = { namespace, name, uid: found.uid, annotations };
    failed = 'Error getting service account token';
    const token = await tokens.tokenFor(pod, account.uid, attributes.serviceAccountTokenAudience);
    const hash = tokenHash(token);
    const cacheKey = serviceAccountKey(account, attributes.cacheType, hash);
    const flight = singleFlightKey(image, hash, account.annotations);
    return { grant: { account, token, cacheKey, singleFlightKey: flight } };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { refused: `${failed} ${namespace}/${name}: ${message}`, isFailure: true };
  }
}

function pick(
  annotations: Readonly<Record<string, string>>,
  keys: readonly string[],
): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => keys.includes(key)));
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
  if (![...auth.values()].some(({ password }) => reveal(password) === reveal(token))) return undefined;
  return (
    `Credential provider plugin returned the service account token as the password for image "${image}", ` +
    "which is not allowed when service account cache type is not set to 'Token'"
  );
}
