/**
 * Image facts for one pod. If the cache knows all images, nothing waits. Otherwise one time budget covers
 * everything: pull secrets are read by name, and all images are looked up at once. An image without an answer
 * by then gets older facts or stays unknown. Its lookup goes on, for the next pod.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CredentialError, type CredentialSource, serviceAccountOf } from '../credentials/credential.ts';
import { describeSourceProblem } from '../credentials/problems.ts';
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import type { FactsCache } from '../images/cache/cache.ts';
import {
  failedFacts,
  type ImageFacts,
  type ImageRequest,
  ofAnyAge,
  type Requester,
  type RequestOf,
} from '../images/facts/facts.ts';
import { noBrokenImages, observed, type BrokenImages } from '../images/sources/broken-images.ts';
import { InvalidReference } from '../images/references/reference.ts';
import type { PodTemplate } from '../kube/api/objects.ts';
import type { ImageUse } from '../placement/pod/images.ts';
import type { Clock } from '../async/clock.ts';
import { timeLimit, unlessAborted } from '../async/wait.ts';
import type { Log } from '../telemetry/log.ts';
import { noPullSecrets, readPullSecrets, type PullSecretNames, type PullSecrets } from './pull-secrets.ts';

/** Facts by image as the pod writes it; an image without an entry is unknown. */
export type FactsByImage = ReadonlyMap<string, ImageFacts>;

export interface PodFactsRequest extends Requester {
  readonly uses: readonly ImageUse[];
  readonly pullSecrets: PullSecretNames;
  /** Longest wait, milliseconds. */
  readonly budgetMs: number;
  /** No request is sent, neither for images nor for pull secrets. */
  readonly cacheOnly?: boolean;
}

export function podFactsRequestOf(
  { spec }: Pick<PodTemplate, 'spec'>,
  namespace: string,
  uses: readonly ImageUse[],
  budgetMs: number,
): PodFactsRequest {
  const serviceAccount = serviceAccountOf(namespace, spec.serviceAccountName);
  return { uses, namespace, pullSecrets: { names: pullSecretNames(spec) }, serviceAccount, budgetMs };
}

export type FactsOfPod = (request: PodFactsRequest) => Promise<FactsByImage>;

export interface FactsOfPodOptions {
  readonly cache: Pick<FactsCache, 'peek' | 'get' | 'levelOf'>;
  readonly requestOf: RequestOf;
  readonly pullSecrets: PullSecrets;
  /** Called after each wait for images. @param isAnswered false: the budget ran out */
  readonly onWait?: ((isAnswered: boolean) => void) | undefined;
  /** Architectures on which images failed although their manifests name them, and missing x86-64 levels. */
  readonly broken?: BrokenImages | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * More than any real pod has; any further ones are unknown. An object at etcd's limit could name 10,000, one
 * request each, and a request of 3 MiB, which the API server has not validated yet, 100,000.
 */
const maxImages = 256;

/** Pods with more new images start their lookups one after the other, and pods with fewer need not wait for them. */
const fewImages = 8;

export function createFactsOfPod(options: FactsOfPodOptions): FactsOfPod {
  const { cache, requestOf, pullSecrets, onWait, clock, broken = noBrokenImages } = options;
  let lastTurn: Promise<unknown> = Promise.resolve();

  async function factsOfPod(request: PodFactsRequest): Promise<FactsByImage> {
    const found = new Map<string, ImageFacts>();
    const missing: ImageRequest[] = [];
    const mayHaveSecrets = pullSecrets.mayHave(request.pullSecrets);
    for (const use of request.uses.slice(0, maxImages)) {
      if (use.pullPolicy === 'Never') continue;
      let ofImage: ImageRequest;
      try {
        ofImage = requestOf(use.image, use.pullPolicy, request);
      } catch (error) {
        if (!(error instanceof InvalidReference)) throw error;
        const invalid = { code: 'invalid-reference', message: error.message } as const;
        found.set(use.image, failedFacts(use.image, invalid, clock.now(), { source: 'memory' }));
        continue;
      }
      const facts = cache.peek(request.cacheOnly ? ofAnyAge(ofImage) : ofImage);
      // The pod's secrets may give access to what is refused without them.
      const isFinal = facts && (!facts.error || facts.source === 'override' || !mayHaveSecrets);
      if (isFinal || (facts && request.cacheOnly)) found.set(use.image, facts);
      else missing.push(ofImage);
    }
    if (missing.length > 0 && !request.cacheOnly) await lookUp(request, missing, found);
    if (broken.size > 0 || cache.levelOf)
      for (const [image, facts] of found)
        found.set(image, observed(facts, image, request.namespace, broken, cache.levelOf));
    return found;
  }

  async function lookUp(
    request: PodFactsRequest,
    missing: readonly ImageRequest[],
    found: Map<string, ImageFacts>,
  ): Promise<void> {
    using budget = timeLimit(request.budgetMs, clock.sleep);
    const { signal } = budget;
    if (missing.length > fewImages) {
      lastTurn = lastTurn.then(() => nextTurn());
      await unlessAborted(lastTurn, signal).catch(() => undefined);
    }
    // Without its secrets, an image may still be public.
    const source =
      (await readPullSecrets(options, request.namespace, request.pullSecrets, signal)) ?? noPullSecrets;
    await Promise.all(
      missing.map(async (ofImage) => {
        const facts = await lookUpImage(ofImage, source, signal);
        if (facts) found.set(ofImage.image, facts);
      }),
    );
    onWait?.(!signal.aborted);
  }

  async function lookUpImage(
    withoutSecrets: ImageRequest,
    source: CredentialSource,
    signal: AbortSignal,
  ): Promise<ImageFacts | undefined> {
    let request = withoutSecrets;
    try {
      const pullCredentials = await source.lookup(request.reference.repository);
      if (pullCredentials.length > 0) request = { ...request, pullCredentials };
      return withHint(await cache.get(request, { signal }), source);
    } catch (error) {
      if (error instanceof CredentialError) {
        const origin = { source: 'memory', credentialSource: 'pull-secret' } as const;
        const refused = { code: 'unauthorized', message: error.message } as const;
        return withHint(failedFacts(request.image, refused, clock.now(), origin), source);
      }
      if (!signal.aborted) throw error;
      const older = cache.peek(ofAnyAge(request));
      return older && { ...older, stale: true };
    }
  }

  return factsOfPod;
}

/** Errors that a pull secret may prevent; some registries use 404 for a missing right. */
const preventable: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'not-found']);

function withHint(facts: ImageFacts, source: CredentialSource): ImageFacts {
  const { error } = facts;
  const [problem] = source.problems();
  if (error === undefined || problem === undefined || !preventable.has(error.code)) return facts;
  return { ...facts, error: { ...error, hint: `pull secret ${describeSourceProblem(problem)}` } };
}
