/**
 * Image facts for one pod. What memory knows is answered without waiting; that is the usual case, and then nothing here
 * is asynchronous. For what is missing there is one time budget: the pod's pull secrets are read by name and the images
 * are asked for, all at once. What has no answer by then is answered with older facts, or stays unknown; the questions
 * go on, so that the next pod finds the answers.
 */
import { CredentialError, type CredentialSource } from '../credentials/credential.ts';
import type { ServiceAccountName } from '../credentials/service-account.ts';
import type { FactsError, ImageFacts, ImageRequest } from '../images/facts/facts.ts';
import { failedFacts } from '../images/facts/failed-facts.ts';
import type { FactsMemory } from '../images/memory/memory.ts';
import { avoiding, noBrokenImages, type BrokenImages } from '../images/sources/broken-images.ts';
import { createReferenceCache } from '../images/references/reference-cache.ts';
import { InvalidReference } from '../images/references/reference.ts';
import type { ImageUse } from '../placement/pod/images.ts';
import type { Clock } from '../async/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { FactsCounters } from './metrics.ts';
import { noPullSecrets, type PullSecretNames, type PullSecrets } from './pull-secrets.ts';

/** Facts by image as the pod writes it. An image that is not in it is unknown. */
export type FactsByImage = ReadonlyMap<string, ImageFacts>;

export interface FactsWanted {
  readonly uses: readonly ImageUse[];
  readonly namespace: string;
  readonly pullSecrets: PullSecretNames;
  /** The pod's; `undefined` where no cluster can have it. */
  readonly serviceAccount: ServiceAccountName | undefined;
  /** How long may be waited, milliseconds. */
  readonly budgetMs: number;
}

export type FactsOfPod = (wanted: FactsWanted) => FactsByImage | Promise<FactsByImage>;

export interface FactsOfPodOptions {
  readonly memory: Pick<FactsMemory, 'recall' | 'lookup' | 'lastKnown'>;
  readonly pullSecrets: PullSecrets;
  readonly counters: FactsCounters;
  /** What is known not to run where its manifest says. */
  readonly broken?: BrokenImages | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * More images than any real pod has. The largest object that etcd takes could name ten thousand, and each question
 * costs an agent a request.
 */
const maxAsked = 256;

interface Missing {
  readonly question: ImageRequest;
  /** A failure that memory has for everybody; a pull secret may do better. */
  readonly failure: ImageFacts | undefined;
}

/** Makes the finder over a memory; it holds nothing that needs to be closed. */
export function createFactsOfPod(options: FactsOfPodOptions): FactsOfPod {
  const { memory, pullSecrets, counters, clock, log, broken = noBrokenImages } = options;
  const parse = createReferenceCache();

  function factsOfPod(wanted: FactsWanted): FactsByImage | Promise<FactsByImage> {
    const known = new Map<string, ImageFacts>();
    const missing: Missing[] = [];
    const secrets = pullSecrets.mayHave(wanted.pullSecrets);
    for (const use of wanted.uses) {
      if (use.pullPolicy === 'Never') continue;
      const question = questionOf(use, wanted.serviceAccount);
      const facts = 'error' in question ? failed(use.image, question.error) : memory.recall(question);
      if (facts && (facts.error === undefined || !secrets || 'error' in question))
        known.set(use.image, facts);
      else if (!('error' in question)) missing.push({ question, failure: facts });
    }
    if (missing.length > 0) {
      return inquire(wanted, missing, known).then((found) => withoutBroken(found, wanted.namespace));
    }
    return withoutBroken(known, wanted.namespace);
  }

  /** Almost always there is nothing to do, and then nothing is done. */
  function withoutBroken(found: Map<string, ImageFacts>, namespace: string): FactsByImage {
    if (broken.size === 0) return found;
    for (const [image, facts] of found) {
      const architectures = facts.digest === undefined ? [] : broken.brokenOn(facts.digest, namespace);
      if (architectures.length > 0) found.set(image, avoiding(facts, architectures));
    }
    return found;
  }

  function questionOf(
    { image, pullPolicy }: ImageUse,
    serviceAccount: ServiceAccountName | undefined,
  ): ImageRequest | { readonly error: FactsError } {
    try {
      const question = { image, reference: parse(image), pullPolicy, pullCredentials: [] };
      return serviceAccount === undefined ? question : { ...question, serviceAccount };
    } catch (error) {
      if (!(error instanceof InvalidReference)) throw error;
      return { error: { code: 'invalid-reference', message: error.message } };
    }
  }

  async function inquire(
    wanted: FactsWanted,
    missing: readonly Missing[],
    known: Map<string, ImageFacts>,
  ): Promise<Map<string, ImageFacts>> {
    const budget = new AbortController();
    const timer = setTimeout(() => budget.abort(), wanted.budgetMs);
    try {
      const source = await sourceFor(wanted, budget.signal);
      await Promise.all(
        missing.map(async ({ question, failure }, index) => {
          const facts =
            index < maxAsked
              ? await learn(question, failure, source, budget.signal)
              : memory.lastKnown(question);
          if (facts) known.set(question.image, facts);
        }),
      );
    } finally {
      clearTimeout(timer);
    }
    (budget.signal.aborted ? counters.waitsExpired : counters.waitsAnswered).inc();
    return known;
  }

  /** Where the secrets cannot be had in time, the images are asked for as if the pod named none: they may be public. */
  async function sourceFor(wanted: FactsWanted, signal: AbortSignal): Promise<CredentialSource> {
    try {
      return await pullSecrets.source(wanted.namespace, wanted.pullSecrets, signal);
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error, namespace: wanted.namespace }, 'pull secrets could not be read');
      return noPullSecrets;
    }
  }

  async function learn(
    shared: ImageRequest,
    failure: ImageFacts | undefined,
    source: CredentialSource,
    signal: AbortSignal,
  ): Promise<ImageFacts | undefined> {
    let question = shared;
    try {
      const pullCredentials = await source.lookup(shared.reference.repository);
      if (pullCredentials.length > 0) question = { ...shared, pullCredentials };
      const recalled = question === shared ? failure : memory.recall(question);
      return recalled ?? (await memory.lookup(question, { signal }));
    } catch (error) {
      if (error instanceof CredentialError) {
        return failed(question.image, { code: 'unauthorized', message: error.message });
      }
      if (!signal.aborted) {
        counters.inquiryFailures.inc();
        log.error({ err: error }, 'an image inspection ended by an unexpected error');
      }
      return memory.lastKnown(question) ?? failure;
    }
  }

  function failed(image: string, error: FactsError): ImageFacts {
    const credentialSource = error.code === 'unauthorized' ? 'pull-secret' : 'anonymous';
    return failedFacts(image, error, clock.now(), { source: 'memory', credentialSource });
  }

  return factsOfPod;
}
