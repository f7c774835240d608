/** The images of `inspect`, with the endpoints and credentials that this process finds. */
import { answerFacts } from '../../daemon/api/facts.ts';
import type { FactsRequest } from '../../daemon/api/facts-request.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { Attempt } from '../../src/registry/manifest-lookup.ts';
import type { CliContext } from '../program/context.ts';
import { openInspection } from '../wiring/inspection.ts';
import { openFactsCache } from '../wiring/image-facts.ts';

/** A credential source, for people. */
export interface NamedSource {
  readonly name: string;
  readonly place: string;
  readonly problems: readonly SourceProblem[];
}

/** What an inspection found. Holds no secret. */
export interface Inspected {
  /** In the order of the images. */
  readonly results: readonly ImageFacts[];
  /** Requests by image, in the order of completion. */
  readonly attempts: Readonly<Record<string, readonly Attempt[]>>;
  readonly sources: readonly NamedSource[];
}

/** Images inspected at a time: more than a pod has, few enough not to look like an attack. */
const concurrentImages = 16;

/** Looks up every image in its registry. Each image has its own time limit; the deadline covers all batches. */
export async function inspectImages(
  { configuration, dockerConfigs, log, metrics }: CliContext,
  env: Readonly<Record<string, string | undefined>>,
  request: Omit<FactsRequest, 'deadlineMs' | 'pullSecrets'> & Partial<Pick<FactsRequest, 'pullSecrets'>>,
  signal: AbortSignal,
): Promise<Inspected> {
  const current = (): Configuration => configuration;
  await using opened = new AsyncDisposableStack();
  const inspection = await openInspection({ configuration: current, dockerConfigs, env, log, stop: signal });
  opened.defer(() => inspection.close());
  const attempts: Record<string, Attempt[]> = {};
  const traced: ImageFactsSource = {
    lookup: (request, options) => {
      const own = (attempts[request.image] ??= []);
      return inspection.inspector.lookup(request, { ...options, trace: (attempt) => own.push(attempt) });
    },
  };
  const cache = await openFactsCache({ configuration: current, source: traced, log, metrics });
  opened.defer(() => cache.close());
  const batches = Math.ceil(request.images.length / concurrentImages);
  const deadlineMs = (batches + 1) * configuration.inspectTimeout;
  const { pullSecrets = createPullSecretSource([]), ...rest } = request;
  const wanted = { ...rest, pullSecrets, deadlineMs };
  const { resolvesShortNames } = inspection;
  const found = answerFacts(wanted, signal, { cache, resolvesShortNames, clock: systemClock, log });
  const results = await Promise.all(found);
  const sources = inspection.sources.map(({ source, place }) => ({
    name: source.name,
    place,
    problems: source.problems(),
  }));
  return { results, attempts, sources };
}
