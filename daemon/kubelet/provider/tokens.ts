/**
 * Service accounts and their tokens from the API server, for plugins with `tokenAttributes`. Both are cached, and concurrent lookups
 * share one request, so that a node full of pods causes a few requests.
 *
 * The kubelet binds its tokens to the pod (kubernetes pkg/kubelet/token/token_manager.go). Here the pod does not exist yet, so the
 * token is bound to the service account only, with the shortest life that the API server accepts.
 */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type { ServiceAccount } from '../../../src/kube/api/objects.ts';
import { systemClock, type Clock } from '../../../src/async/clock.ts';
import { LoadingCache, type Loaded } from '../../../src/async/loading-cache.ts';
import { secret, type Secret } from '../../../src/telemetry/secret.ts';
import type { ServiceAccountTokens } from './service-account.ts';
import { paths } from '../../../src/kube/api/paths.ts';

type Account = Awaited<ReturnType<ServiceAccountTokens['serviceAccount']>>;

/** `TokenRequest` of authentication.k8s.io/v1, not yet validated. */
interface TokenRequest {
  readonly spec?: { readonly expirationSeconds?: unknown };
  readonly status?: { readonly token?: unknown };
}

/** The minimum of the API server (kubernetes pkg/apis/authentication/validation). */
const lifeSeconds = 600;
/** A token is replaced after a day at the latest. */
const longestLifeSeconds = 86_400;
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

/** Methods throw KubeError. */
export function createServiceAccountTokens(
  client: Pick<KubeClient, 'get' | 'create'>,
  clock: Clock = systemClock,
): ServiceAccountTokens {
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
    return { value: secret(text), expiresAt: requestedAt + lifeOf(answer) * 1000 * usedShare };
  }

  return {
    serviceAccount: (namespace, name) =>
      accounts.get(`${namespace}/${name}`, async () => {
        const expiresAt = clock.monotonic() + accountTtlMs;
        const path = paths.serviceAccounts(namespace, name);
        const signal = AbortSignal.timeout(timeoutMs);
        const { metadata } = (await client.get<ServiceAccount | null>(path, { signal })) ?? {};
        if (metadata?.uid === undefined || metadata.uid === '') {
          const where = `GET ${path}`;
          throw new KubeError('bad-answer', where, `${where}: the API server answered without a uid`);
        }
        return { value: { uid: metadata.uid, annotations: strings(metadata.annotations) }, expiresAt };
      }),
    tokenFor: async ({ namespace, serviceAccountName: name }, uid, audience) => {
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

/** Seconds. The response has the life and a time of the server's clock; only the first is independent of clocks. */
function lifeOf(answer: TokenRequest | null): number {
  const given = answer?.spec?.expirationSeconds;
  const isLife = typeof given === 'number' && Number.isFinite(given) && given > 0;
  return isLife ? Math.min(given, longestLifeSeconds) : lifeSeconds;
}

/** Kubernetes accepts strings only. */
function strings(annotations: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string';
  return Object.fromEntries(Object.entries(annotations).filter(isText));
}
