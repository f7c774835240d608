/**
 * Image facts for one pod. If memory has them, nothing here is asynchronous. Otherwise one time budget covers
 * everything: pull secrets are read by name, and all images are looked up at once. An image without an answer
 * by then gets older facts or stays unknown. Its lookup goes on, for the next pod.
 */
import {
  CredentialError,
  type CredentialSource,
  serviceAccountOf,
  type ServiceAccountName,
} from '../credentials/credential.ts';
import { describeProblem } from '../credentials/problems.ts';
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import { failedFacts, type FactsError, type ImageFacts, type ImageRequest } from '../images/facts/facts.ts';
import type { FactsMemory } from '../images/memory/memory.ts';
import { avoiding, noBrokenImages, type BrokenImages } from '../images/sources/broken-images.ts';
import { createReferenceCache, InvalidReference, type Reference } from '../images/references/reference.ts';
import type { Pod } from '../kube/api/objects.ts';
import type { ImageUse } from '../placement/pod/images.ts';
import { highestOf } from '../nodes/amd64-level.ts';
import type { Clock } from '../async/clock.ts';
import { timeLimit } from '../async/wait.ts';
import type { Log } from '../telemetry/log.ts';
import type { FactsCounters } from './metrics.ts';
import { noPullSecrets, type PullSecretNames, type PullSecrets } from './pull-secrets.ts';

/** Facts by image as the pod writes it; an image without an entry is unknown. */
export type FactsByImage = ReadonlyMap<string, ImageFacts>;

export interface FactsWanted {
  readonly uses: readonly ImageUse[];
  readonly namespace: string;
  readonly pullSecrets: PullSecretNames;
  /** The pod's; `undefined` without a cluster. */
  readonly serviceAccount: ServiceAccountName | undefined;
  /** Longest wait, milliseconds. */
  readonly budgetMs: number;
  /** Without any request: neither for images nor for pull secrets. */
  readonly memoryOnly?: boolean;
}

export function factsWanted(
  { spec }: Pick<Pod, 'spec'>,
  namespace: string,
  uses: readonly ImageUse[],
  budgetMs: number,
): FactsWanted {
  const serviceAccount = serviceAccountOf(namespace, spec.serviceAccountName);
  return { uses, namespace, pullSecrets: { names: pullSecretNames(spec) }, serviceAccount, budgetMs };
}

/** @throws InvalidReference */
export function imageRequest(
  parse: (image: string) => Reference,
  { image, pullPolicy }: ImageUse,
  { namespace, serviceAccount }: FactsWanted,
): ImageRequest {
  const request = { image, reference: parse(image), pullPolicy, pullCredentials: [], namespace };
  return serviceAccount === undefined ? request : { ...request, serviceAccount };
}

export type FactsOfPod = (wanted: FactsWanted) => FactsByImage | Promise<FactsByImage>;

export interface FactsOfPodOptions {
  readonly memory: Pick<FactsMemory, 'recall' | 'lookup' | 'lastKnown' | 'levelOf'>;
  readonly pullSecrets: PullSecrets;
  readonly counters: FactsCounters;
  /** Architectures on which images failed although their manifests name them, and missing x86-64 levels. */
  readonly broken?: BrokenImages | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** More images than any real pod has. An object at etcd's limit could name 10,000, one request each. */
const maxLookups = 256;

/** Any further ones are unknown. A request of 3 MiB, which the API server has not validated yet, has 100,000. */
const maxImages = 1024;

interface Missing {
  readonly request: ImageRequest;
  /** The failure without pull secrets; the pod's may give access. */
  readonly failure: ImageFacts | undefined;
}

export function createFactsOfPod(options: FactsOfPodOptions): FactsOfPod {
  const { memory, pullSecrets, counters, clock, log, broken = noBrokenImages } = options;
  const parse = createReferenceCache();

  function factsOfPod(wanted: FactsWanted): FactsByImage | Promise<FactsByImage> {
    const found = new Map<string, ImageFacts>();
    const missing: Missing[] = [];
    const mayHaveSecrets = pullSecrets.mayHave(wanted.pullSecrets);
    for (const use of wanted.uses.slice(0, maxImages)) {
      if (use.pullPolicy === 'Never') continue;
      const request = requestOf(use, wanted);
      if (request instanceof InvalidReference) {
        found.set(use.image, failed(use.image, { code: 'invalid-reference', message: request.message }));
        continue;
      }
      const facts = wanted.memoryOnly ? memory.lastKnown(request) : memory.recall(request);
      if (wanted.memoryOnly) {
        if (facts) found.set(use.image, facts);
      } else if (facts && (facts.error === undefined || facts.source === 'override' || !mayHaveSecrets))
        found.set(use.image, facts);
      else missing.push({ request, failure: facts });
    }
    if (missing.length === 0) return asNoted(found, wanted.namespace);
    return lookUp(wanted, missing, found).then(() => asNoted(found, wanted.namespace));
  }

  /** Facts with the levels of overrides, and with failures seen on nodes. */
  function asNoted(found: Map<string, ImageFacts>, namespace: string): FactsByImage {
    const { levelOf } = memory;
    if (broken.size === 0 && levelOf === undefined) return found;
    for (const [image, facts] of found) {
      const { digest } = facts;
      if (facts.error !== undefined) continue;
      const architectures = digest === undefined ? [] : broken.brokenOn(digest, namespace);
      if (architectures.length > 0) found.set(image, avoiding(facts, architectures));
      const noted = digest === undefined ? undefined : broken.requiredLevel(digest, namespace);
      const requiredLevel = highestOf([noted, levelOf?.(parse(image))]);
      if (requiredLevel) found.set(image, { ...(found.get(image) ?? facts), requiredLevel });
    }
    return found;
  }

  function requestOf(use: ImageUse, wanted: FactsWanted): ImageRequest | InvalidReference {
    try {
      return imageRequest(parse, use, wanted);
    } catch (error) {
      if (error instanceof InvalidReference) return error;
      throw error;
    }
  }

  async function lookUp(
    wanted: FactsWanted,
    missing: readonly Missing[],
    found: Map<string, ImageFacts>,
  ): Promise<void> {
    using budget = timeLimit(wanted.budgetMs, clock.sleep);
    const { signal } = budget;
    const source = await sourceFor(wanted, signal);
    await Promise.all(
      missing.map(async ({ request, failure }, index) => {
        const facts =
          index < maxLookups ? await lookUpOne(request, failure, source, signal) : memory.lastKnown(request);
        if (facts) found.set(request.image, facts);
      }),
    );
    (signal.aborted ? counters.waitsExpired : counters.waitsAnswered).inc();
  }

  /** If the secrets cannot be read in time, the images are looked up without them: they may be public. */
  async function sourceFor(wanted: FactsWanted, signal: AbortSignal): Promise<CredentialSource> {
    try {
      return await pullSecrets.source(wanted.namespace, wanted.pullSecrets, signal);
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error, namespace: wanted.namespace }, 'pull secrets could not be read');
      return noPullSecrets;
    }
  }

  async function lookUpOne(
    withoutSecrets: ImageRequest,
    failure: ImageFacts | undefined,
    source: CredentialSource,
    signal: AbortSignal,
  ): Promise<ImageFacts | undefined> {
    let request = withoutSecrets;
    try {
      const pullCredentials = await source.lookup(request.reference.repository);
      if (pullCredentials.length > 0) request = { ...request, pullCredentials };
      const recalled = request === withoutSecrets ? failure : memory.recall(request);
      return withHint(recalled ?? (await memory.lookup(request, { signal })), source);
    } catch (error) {
      if (error instanceof CredentialError) {
        const { message } = error;
        return withHint(failed(request.image, { code: 'unauthorized', message }), source);
      }
      if (!signal.aborted) {
        counters.lookupFailures.inc();
        log.error({ err: error }, 'an image inspection ended by an unexpected error');
      }
      return memory.lastKnown(request) ?? failure;
    }
  }

  function failed(image: string, error: FactsError): ImageFacts {
    const credentialSource = error.code === 'unauthorized' ? 'pull-secret' : 'anonymous';
    return failedFacts(image, error, clock.now(), { source: 'memory', credentialSource });
  }

  return factsOfPod;
}

/** Errors that a pull secret may prevent; some registries use 404 for a missing right. */
const preventable: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'not-found']);

function withHint(facts: ImageFacts, source: CredentialSource): ImageFacts {
  const { error } = facts;
  const [problem] = source.problems();
  if (error === undefined || problem === undefined || !preventable.has(error.code)) return facts;
  return { ...facts, error: { ...error, hint: `pull secret ${describeProblem(problem)}` } };
}
