/**
 * What a plugin with `tokenAttributes` gets besides the image: a token of the pod's service account and some of its
 * annotations (KEP-4412; kubernetes pkg/credentialprovider/plugin/plugin.go `serviceAccountProvider`). Where the token comes from
 * is not known here: whoever may ask the cluster gives `ServiceAccountTokens`.
 */
import { reveal, type Secret } from '../../../src/telemetry/secret.ts';
import { flightKey, serviceAccountKey, tokenHash, type ServiceAccountIdentity } from './cache-key.ts';
import type { Auth } from './cache.ts';
import type { TokenAttributes } from '../config/provider-config.ts';

/** The pod for which an image is asked; one that is not created yet has no uid, and perhaps no name. */
export interface PodIdentity {
  readonly namespace: string;
  readonly name?: string;
  readonly uid?: string;
  /** Empty for a pod without one, such as a static pod. */
  readonly serviceAccountName: string;
}

/** The cluster, as far as tokens go. */
export interface ServiceAccountTokens {
  serviceAccount(
    namespace: string,
    name: string,
  ): Promise<{ readonly uid: string; readonly annotations: Readonly<Record<string, string>> }>;
  /**
   * A TokenRequest for the pod's service account, with one audience. The kubelet's is bound to the pod.
   * @param serviceAccountUid the token is for this service account and no later one of the same name
   */
  tokenFor(pod: PodIdentity, serviceAccountUid: string, audience: string): Promise<Secret>;
}

/** What one run is given, and how it is told apart from others. */
export interface Grant {
  readonly account: ServiceAccountIdentity;
  readonly token: Secret;
  /** Part of each cache key. */
  readonly cacheKey: Buffer;
  readonly flightKey: Buffer;
}

/** A run goes on with a grant, goes on without one, or does not happen. */
export type GrantOutcome =
  | { readonly grant: Grant | undefined; readonly refused?: undefined }
  | {
      readonly refused: string;
      /** The cluster did not give what is needed; otherwise the pod is not meant to have credentials from this plugin. */
      readonly isFailure: boolean;
    };

/** Finds out what a plugin may be given for a pod. The reasons are in the words of the kubelet's log. */
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
    account = { namespace, name, uid: found.uid, annotations: given(attributes, found.annotations) };
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
        flightKey: flightKey(image, hash, account.annotations),
      },
    };
  } catch (error) {
    const refused = `Error getting service account token ${namespace}/${name}: ${messageOf(error)}`;
    return { refused, isFailure: true };
  }
}

/**
 * Whether an answer may be used: a plugin that hands the token itself out as a password must have its answers kept for each
 * token apart, or one pod would pull with another's token.
 * @returns why not
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

function given(
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
