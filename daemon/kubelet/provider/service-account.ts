/**
 * The token and the annotations of the pod's service account in the request to a plugin with
 * `tokenAttributes` (KEP-4412; kubernetes pkg/credentialprovider/plugin/plugin.go `serviceAccountProvider`).
 */
import type { Credential, ServiceAccountName } from '../../../src/credentials/credential.ts';
import { reveal, type Secret, secret } from '../../../src/telemetry/secret.ts';
import type { TokenAttributes } from '../config/provider-config.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type { ServiceAccount } from '../../../src/kube/api/objects.ts';
import { systemClock, type Clock } from '../../../src/async/clock.ts';
import { LoadingCache, type Loaded } from '../../../src/async/loading-cache.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { hashOf } from '../../../src/names/hash.ts';
import { messageOf } from '../../../src/names/printable.ts';
import { compareBytes } from '../../../src/names/values.ts';

export type ServiceAccountTokens = ReturnType<typeof createServiceAccountTokens>;

/** Credentials by key. */
export type Auth = ReadonlyMap<string, Credential>;

export interface Grant {
  readonly token: Secret;
  /** The annotations in the plugin's request. */
  readonly annotations: Readonly<Record<string, string>>;
  /** The service account's part of cache keys. With the cache type `Token`, each token has its own entries. */
  readonly cacheKey: string;
  /** Concurrent lookups with the same key share one run. */
  readonly runKey: string;
}

/**
 * The service account and its token, or why the account is not for this plugin, in the kubelet's words.
 * @throws Error if the API server fails or refuses
 */
export async function grantFor(
  attributes: TokenAttributes,
  image: string,
  named: ServiceAccountName,
  tokens: ServiceAccountTokens,
): Promise<Grant | string> {
  const of = `${named.namespace}/${named.name}`;
  const { requiredServiceAccountAnnotationKeys: required = [] } = attributes;
  const { optionalServiceAccountAnnotationKeys: optional = [] } = attributes;
  const found = await tokens
    .serviceAccount(named.namespace, named.name)
    .catch(failing(`Failed to get service account ${of}`));
  const missing = required.find((key) => !Object.hasOwn(found.annotations, key));
  if (missing !== undefined)
    return `Failed to get service account data ${of}: required annotation ${missing} not found`;
  const given = Object.entries(found.annotations).sort(([a], [b]) => compareBytes(a, b));
  const sorted = given.filter(([key]) => required.includes(key) || optional.includes(key));
  const token = await tokens
    .tokenFor(named, found.uid, attributes.serviceAccountTokenAudience)
    .catch(failing(`Error getting service account token ${of}`));
  const hash = hashOf(reveal(token));
  const account = [named.namespace, named.name, found.uid, sorted];
  const cacheKey = JSON.stringify([account, attributes.cacheType === 'Token' ? hash : '']);
  // The kubelet's keys have room for this much (`pkg/credentialprovider/plugin/plugin.go`).
  if (Buffer.byteLength(cacheKey) > 0xffff) return `The annotations of ${of} are longer than 65535 bytes`;
  const annotations = Object.fromEntries(sorted);
  return { token, annotations, cacheKey, runKey: JSON.stringify([image, account, hash]) };
}

function failing(what: string) {
  return (error: unknown): never => {
    throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
  };
}

/** Whether a plugin returned the token itself: without cache type `Token`, other pods would use it. */
export function echoedToken({ cacheType }: TokenAttributes, image: string, token: Secret, auth: Auth) {
  if (cacheType === 'Token') return undefined;
  if (![...auth.values()].some(({ password }) => reveal(password) === reveal(token))) return undefined;
  return (
    `Credential provider plugin returned the service account token as the password for image "${image}", ` +
    "which is not allowed when service account cache type is not set to 'Token'"
  );
}

interface Account {
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** `TokenRequest` of authentication.k8s.io/v1, not yet validated. */
interface TokenRequest {
  readonly status?: { readonly token?: unknown };
}

/** The minimum of the API server (kubernetes pkg/apis/authentication/validation). It never gives a shorter life. */
const lifeSeconds = 600;
/** The kubelet also renews its tokens after this part of their life. */
const usedShare = 0.8;
/** Tokens have 1 to 2 KiB; HTTP servers limit headers to 16 KiB. */
const maxTokenLength = 16 * 1024;
/** Annotations can change at any time. Pull secrets are cached for a minute too. */
const accountTtlMs = 60_000;
/** Annotations are limited to 256 KiB, so this is 25 MiB at most, and usually some KiB. */
const maxAccounts = 100;
const maxTokens = 1000;
/** A lookup waits for it; the API server answers within milliseconds. */
const timeoutMs = 5000;

/**
 * Service accounts and their tokens from the API server. Both are cached, and concurrent lookups share one
 * request, so that a node full of pods causes a few requests. Methods throw KubeError.
 *
 * The kubelet binds its tokens to the pod (kubernetes pkg/kubelet/token/token_manager.go). Here the pod does
 * not exist yet, so the token is bound to the service account only, with the shortest life that the API
 * server accepts.
 */
export function createServiceAccountTokens(
  client: Pick<KubeClient, 'get' | 'create'>,
  clock: Clock = systemClock,
) {
  const accounts = new LoadingCache<Account>({ clock, maxEntries: maxAccounts });
  const tokens = new LoadingCache<Secret>({ clock, maxEntries: maxTokens });

  async function token(path: string, uid: string, audience: string): Promise<Loaded<Secret>> {
    const requestedAt = clock.monotonic();
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      // Refuses a new service account of the same name.
      metadata: { uid },
      spec: { audiences: [audience], expirationSeconds: lifeSeconds },
    };
    const answer = await client.create<TokenRequest | null>(`${path}/token`, request, {
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = answer?.status?.token;
    // Tokens are JSON Web Tokens, RFC 7519: letters, digits and a few marks.
    if (typeof text !== 'string' || text.length > maxTokenLength || !/^[\w.~+/=-]+$/.test(text)) {
      const where = `POST ${path}/token`;
      throw new KubeError('bad-answer', where, `${where}: the API server answered without a usable token`);
    }
    return { value: secret(text, 'others'), expiresAt: requestedAt + lifeSeconds * 1000 * usedShare };
  }

  return {
    serviceAccount: (namespace: string, name: string) =>
      accounts.get(`${namespace}/${name}`, async () => {
        const expiresAt = clock.monotonic() + accountTtlMs;
        const path = paths.serviceAccounts(namespace, name);
        const signal = AbortSignal.timeout(timeoutMs);
        const { metadata } = (await client.get<ServiceAccount | null>(path, { signal })) ?? {};
        if (metadata?.uid === undefined || metadata.uid === '') {
          const where = `GET ${path}`;
          throw new KubeError('bad-answer', where, `${where}: the API server answered without a uid`);
        }
        return { value: { uid: metadata.uid, annotations: metadata.annotations ?? {} }, expiresAt };
      }),
    /**
     * A TokenRequest with one audience. The kubelet's is bound to the pod.
     * @param uid excludes a later service account of the same name
     */
    tokenFor: async ({ namespace, name }: ServiceAccountName, uid: string, audience: string) => {
      try {
        return await tokens.get(JSON.stringify([namespace, name, uid, audience]), () =>
          token(paths.serviceAccounts(namespace, name), uid, audience),
        );
      } catch (error) {
        // The cached account was deleted; the next lookup reads its successor.
        if (error instanceof KubeError && error.code !== 'forbidden' && !error.temporary) {
          accounts.delete(`${namespace}/${name}`);
        }
        throw error;
      }
    },
  };
}
