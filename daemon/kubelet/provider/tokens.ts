/**
 * Service accounts and their tokens from the API server, for plugins with `tokenAttributes`. Both are kept for a while and asked for
 * once at a time, so that a node full of pods costs the API server a handful of requests.
 *
 * The kubelet binds its tokens to the pod (kubernetes pkg/kubelet/token/token_manager.go); here the pod does not exist yet,
 * so the token is bound to its service account alone and has the shortest life that the API server gives.
 */
import type { KubeClient } from '../../../src/kube/api/client.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type { ServiceAccount } from '../../../src/kube/api/objects.ts';
import { systemClock, type Clock } from '../../../src/async/clock.ts';
import { LoadingCache, type Loaded } from '../../../src/async/loading-cache.ts';
import { secret, type Secret } from '../../../src/telemetry/secret.ts';
import type { ServiceAccountTokens } from './service-account.ts';
import { paths } from '../../../src/kube/api/paths.ts';

export interface ServiceAccountTokensOptions {
  readonly client: Pick<KubeClient, 'get' | 'create'>;
  readonly clock?: Clock | undefined;
}

type Account = Awaited<ReturnType<ServiceAccountTokens['serviceAccount']>>;

/** As in `TokenRequest` of authentication.k8s.io/v1; the server may leave out whatever it likes. */
interface TokenRequest {
  readonly spec?: { readonly expirationSeconds?: unknown };
  readonly status?: { readonly token?: unknown };
}

/** The least that the API server takes (kubernetes pkg/apis/authentication/validation). */
const lifeSeconds = 600;
/** Whatever life a server gives, a token is asked for again after a day. */
const longestLifeSeconds = 86_400;
/** The kubelet renews its tokens at this share of their life too. */
const usedShare = 0.8;
/** Real tokens have 1 to 2 KiB; a header of HTTP takes no more than this. */
const maxTokenLength = 16 * 1024;
/** Annotations may change without a restart of anything; a minute is what pull secrets are kept, too. */
const accountKeptMs = 60_000;
/** Annotations may have 256 KiB together, so these are 25 MiB in the worst case, and usually some KiB. */
const maxAccounts = 100;
const maxTokens = 1000;
/** Somebody waits for an image behind this; the API server answers within milliseconds. */
const timeoutMs = 5000;

/** Makes the source of tokens; it asks nothing before it is asked. All it throws is KubeError. */
export function createServiceAccountTokens(options: ServiceAccountTokensOptions): ServiceAccountTokens {
  const { client, clock = systemClock } = options;
  const accounts = new LoadingCache<Account>({ clock, maxEntries: maxAccounts });
  const tokens = new LoadingCache<Secret>({ clock, maxEntries: maxTokens });

  async function token(path: string, uid: string, audience: string): Promise<Loaded<Secret>> {
    const askedAt = clock.monotonic();
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      // Another service account of the same name, made meanwhile, is refused.
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
    return { value: secret(text), expiresAt: askedAt + lifeOf(answer) * 1000 * usedShare };
  }

  return {
    serviceAccount: (namespace, name) =>
      accounts.get(`${namespace}/${name}`, async () => {
        const expiresAt = clock.monotonic() + accountKeptMs;
        const path = pathOf(namespace, name);
        const signal = AbortSignal.timeout(timeoutMs);
        const { metadata } = (await client.get<ServiceAccount | null>(path, { signal })) ?? {};
        if (metadata?.uid === undefined || metadata.uid === '') {
          const where = `GET ${path}`;
          throw new KubeError('bad-answer', where, `${where}: the API server answered without a uid`);
        }
        return { value: { uid: metadata.uid, annotations: texts(metadata.annotations) }, expiresAt };
      }),
    tokenFor: async ({ namespace, serviceAccountName: name }, uid, audience) => {
      try {
        return await tokens.get(JSON.stringify([namespace, name, uid, audience]), () =>
          token(pathOf(namespace, name), uid, audience),
        );
      } catch (error) {
        // The account that was kept is gone; the next one who asks gets to know its successor.
        if (error instanceof KubeError && error.code !== 'forbidden' && !error.temporary) {
          accounts.delete(`${namespace}/${name}`);
        }
        throw error;
      }
    },
  };
}

/** Seconds, by the server's own word rather than by its clock. */
function lifeOf(answer: TokenRequest | null): number {
  const given = answer?.spec?.expirationSeconds;
  const isLife = typeof given === 'number' && Number.isFinite(given) && given > 0;
  return isLife ? Math.min(given, longestLifeSeconds) : lifeSeconds;
}

/** Kubernetes takes nothing but texts; what else comes is no annotation. */
function texts(annotations: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  const entries = Object.entries(annotations);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function pathOf(namespace: string, name: string): string {
  return paths.serviceAccounts(namespace, name);
}
