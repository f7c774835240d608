/**
 * Checks callers of the facts API. The API server's proxy forwards no credential, so a request has a service
 * account's token for the audience `arch.example/facts`. The API server checks it (TokenReview).
 *
 * - In the service account's own namespace, the token is enough. Its owner may create tokens or pods there. A
 *   created pod would show as much: archwright would place it, and the kubelet would pull its images. The
 *   caller gets the same texts about failed lookups as pods' events.
 * - In another namespace, the service account needs the right to create `imagefacts.arch.example` there
 *   (SubjectAccessReview). No API serves that resource. The caller gets the messages of failed lookups too.
 */
import type { V1SubjectAccessReview, V1TokenReview, V1UserInfo } from '@kubernetes/client-node';
import { FairSemaphore } from '../async/fair-semaphore.ts';
import { LoadingCache } from '../async/loading-cache.ts';
import type { Clock } from '../async/clock.ts';
import { unlessAborted } from '../async/wait.ts';
import type { KubeClient } from '../kube/api/client.ts';
import type { Json } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { hashOf } from '../names/hash.ts';
import { reveal, type Secret } from '../telemetry/secret.ts';
import { factsAudience } from './request.ts';

/** Unknown caller, or no right to the namespace. Without details, because anyone can send a request. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

type TokenReview = Json<V1TokenReview>;
type User = Json<V1UserInfo>;
type AccessReview = Partial<Json<V1SubjectAccessReview>>;

const serviceAccountUser = /^system:serviceaccount:([a-z0-9-]+):[a-z0-9.-]+$/;

/** A report sends one request for each kind of pod. A removed right or service account counts after this. */
const keepMs = 30_000;
const maxKept = 1000;
/** Waiting and the review, which the API server answers from memory. */
const reviewMs = 5000;
/** Token reviews at a time, fair by address: strangers in one pod do not keep others waiting. */
const reviews = { places: 8, maxWaiting: 256 };

/** @returns checks a caller */
export function createCallers({ client, clock }: { readonly client: KubeClient; readonly clock: Clock }) {
  const places = new FairSemaphore(reviews);
  /** Keys: hashes of tokens. */
  const users = new LoadingCache<User>({ clock, maxEntries: maxKept });
  /** Keys: user and namespace. */
  const allowed = new LoadingCache<void>({ clock, maxEntries: maxKept });

  /** Failures are not kept, so strangers take no room. */
  async function kept<T>(peer: string, review: (signal: AbortSignal) => Promise<T>) {
    const limit = AbortSignal.timeout(reviewMs);
    const leave = await places.enter(peer, limit);
    const value = await review(limit).finally(leave);
    return { value, expiresAt: clock.monotonic() + keepMs };
  }

  /**
   * @param peer address of the connection
   * @returns `seesDetails`: the caller has an explicit right
   * @throws Refused; Overloaded; KubeError if the API server does not answer
   */
  return async (token: Secret | undefined, namespace: string, peer: string, signal: AbortSignal) => {
    if (token === undefined) throw new Refused('the token is not for archwright');
    const key = hashOf(reveal(token));
    const reviewed = users.get(key, () => kept(peer, (limit) => userOf(client, token, limit)));
    const user = await unlessAborted(reviewed, signal);
    const { username = '' } = user;
    if (serviceAccountUser.exec(username)?.[1] === namespace) return { username, seesDetails: false };
    const pair = JSON.stringify([key, namespace]);
    const granted = allowed.get(pair, () => kept(peer, (limit) => allow(client, user, namespace, limit)));
    await unlessAborted(granted, signal);
    return { username, seesDetails: true };
  };
}

async function userOf(client: KubeClient, token: Secret, signal: AbortSignal): Promise<User> {
  const review = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token: reveal(token), audiences: [factsAudience] },
  };
  const { status = {} } = await client.create<TokenReview>(paths.tokenReviews(), review, { signal });
  const { authenticated, audiences = [], user = {} } = status;
  // An authenticator that knows no audiences returns none: its tokens are for the API server.
  if (authenticated !== true || !audiences.includes(factsAudience))
    throw new Refused('the token is not valid');
  if (!serviceAccountUser.test(user.username ?? ''))
    throw new Refused('the token does not belong to a service account');
  return user;
}

async function allow(
  client: KubeClient,
  { username, uid, groups, extra }: User,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const resourceAttributes = { namespace, verb: 'create', group: 'arch.example', resource: 'imagefacts' };
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: username, uid, groups, extra, resourceAttributes },
  };
  const { status } = await client.create<AccessReview>(paths.subjectAccessReviews(), review, { signal });
  if (status?.allowed !== true)
    throw new Refused(`${username} has no right to create imagefacts.arch.example in ${namespace}`);
}
