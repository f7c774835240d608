/** One inspection by a process with credentials and connections: the agent, or `inspect` itself. */
import { answerFacts } from '../../daemon/api/facts.ts';
import type { FactsRequest } from '../../daemon/api/facts-request.ts';
import type { Inspected } from '../../daemon/local/protocol.ts';
import { systemClock } from '../../src/async/clock.ts';
import { createPullSecretSource } from '../../src/credentials/sources/pull-secrets.ts';
import type { ImageFactsSource } from '../../src/images/facts/facts.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { Attempt } from '../../src/registry/manifest-lookup.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import type { CliContext } from '../program/context.ts';
import { openInspection } from '../wiring/inspection.ts';
import { openMemory } from '../wiring/image-facts.ts';

type Inspection = Pick<Awaited<ReturnType<typeof openInspection>>, 'inspector' | 'sources'>;

export interface InspectOptions {
  readonly configuration: () => Configuration;
  readonly log: Log;
}

/** Images inspected at a time: more than a pod has, few enough not to look like an attack. */
const concurrentImages = 16;

/**
 * Looks up every image in its registry; what the process remembers does not count. Each image has its own
 * time limit; the deadline covers all batches.
 */
export async function inspectImages(
  { inspector, sources }: Inspection,
  request: Omit<FactsRequest, 'deadlineMs'>,
  { configuration, log }: InspectOptions,
  signal: AbortSignal,
): Promise<Inspected> {
  const attempts: Record<string, Attempt[]> = {};
  const traced: ImageFactsSource = {
    lookup: (request, options) => {
      const own = (attempts[request.image] ??= []);
      return inspector.lookup(request, { ...options, trace: (attempt) => own.push(attempt) });
    },
  };
  const memory = await openMemory({ configuration, inspector: traced, log, metrics: createMetrics() });
  try {
    const batches = Math.ceil(request.images.length / concurrentImages);
    const deadlineMs = (batches + 1) * configuration().inspectTimeout;
    const results = await answerFacts({ ...request, deadlineMs }, signal, {
      memory,
      clock: systemClock,
      log,
    });
    const named = sources.map(({ source, place }) => ({
      name: source.name,
      place,
      problems: source.problems(),
    }));
    return { results, attempts, sources: named };
  } finally {
    await memory.close();
  }
}

/** With the credentials that this process finds. */
export async function inspectHere(
  { configuration, dockerConfigs, log }: CliContext,
  env: Readonly<Record<string, string | undefined>>,
  request: Omit<FactsRequest, 'deadlineMs' | 'pullSecrets'> & Partial<Pick<FactsRequest, 'pullSecrets'>>,
  signal: AbortSignal,
): Promise<Inspected> {
  const options = { configuration: () => configuration, log };
  const inspection = await openInspection({ ...options, dockerConfigs, env, stop: signal });
  try {
    const { pullSecrets = createPullSecretSource([]), ...rest } = request;
    return await inspectImages(inspection, { ...rest, pullSecrets }, options, signal);
  } finally {
    await inspection.close();
  }
}
