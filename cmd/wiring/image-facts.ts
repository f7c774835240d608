/**
 * Image facts of a subcommand: memory in front of the agents, or of registries without `--agents`. Times,
 * size and overrides come from the live configuration.
 */
import { join } from 'node:path';
import { FactsFile } from '../../src/images/memory/disk.ts';
import type { ImageFactsSource } from '../../src/images/facts/facts.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { createFactsMetrics } from '../../src/images/memory/metrics.ts';
import { compileRegistryRules } from '../../src/images/sources/registry-rules.ts';
import { compileOverrides, type Overrides } from '../../src/images/sources/overrides.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { derived } from './derived.ts';
import { openFleet } from './fleet.ts';
import { liveFreshness, openInspection, type InspectionOptions } from './inspection.ts';

export interface MemoryOptions {
  readonly configuration: () => Configuration;
  readonly inspector: ImageFactsSource;
  /** Whether `inspector` is the fleet of agents. */
  readonly isFleet?: boolean;
  /** Directory of the state file. Without one, facts do not survive a restart. */
  readonly stateDir?: string | undefined;
  /** Default: as a webhook needs it. */
  readonly concurrentLookups?: number;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Creates the memory and loads the state file, if there is one. Close it at the end. */
export async function openMemory(options: MemoryOptions): Promise<FactsMemory> {
  const { configuration, inspector, isFleet = false, stateDir, concurrentLookups, log, metrics } = options;
  const { cacheSize, inspectTimeout, maxRequestsPerRegistry } = configuration();
  const file =
    stateDir === undefined ? undefined : new FactsFile({ path: join(stateDir, 'image-facts.ndjson'), log });
  const overrides = derived(configuration, (from) => {
    const own = compileOverrides(from.imageOverrides, systemClock);
    const refused = compileRegistryRules(from, systemClock);
    return {
      find: (...image: Parameters<Overrides['find']>) => own.find(...image) ?? refused(...image),
      levelOf: own.levelOf,
    };
  });
  const memory = new FactsMemory({
    source: inspector,
    log,
    freshness: liveFreshness(configuration),
    overrides: {
      find: (image, reference) => overrides().find(image, reference),
      get levelOf() {
        return overrides().levelOf;
      },
      get version() {
        return overrides();
      },
    },
    tagsAnswerForDigests: !isFleet,
    namespacesShareLookups: !isFleet,
    maxBytes: cacheSize,
    lookupTimeoutMs: inspectTimeout,
    metrics: createFactsMetrics(metrics),
    ...(file && { file }),
    ...(concurrentLookups !== undefined && { concurrentLookups }),
    // Each lookup sends its requests one after the other. The agents limit theirs themselves.
    ...(!isFleet && { lookupsPerHost: maxRequestsPerRegistry }),
  });
  if (file) {
    const count = await file.load((facts) => memory.learn(facts));
    log.info({ count }, 'loaded image facts from the state file');
  }
  return memory;
}

export interface ImageFactsOptions extends InspectionOptions {
  readonly metrics: Metrics;
  readonly client: KubeClient | undefined;
  /** Whether the agents' client certificate may appear later. */
  readonly mayWait?: boolean;
}

/**
 * @param opened closes what this opens
 * @returns `ready` resolves after the first discovery of agents
 */
export async function openImageFacts(options: ImageFactsOptions, opened: AsyncDisposableStack) {
  const { configuration, client, log, metrics, mayWait = false } = options;
  const freshness = liveFreshness(configuration);
  const open = await openFleet({ ...configuration(), client, freshness, log, metrics, mayWait });
  const source = open ?? (await openInspection(options));
  opened.defer(() => source.close());
  const inspector = 'fleet' in source ? source.fleet : source.inspector;
  const isFleet = open !== undefined;
  const memory = await openMemory({ configuration, inspector, isFleet, log, metrics });
  opened.defer(() => memory.close());
  return {
    memory,
    fleet: open?.fleet,
    ready: async (signal: AbortSignal) => open?.ready(signal),
    /** Where this machine's credentials are; empty if agents look up images. */
    places: 'sources' in source ? source.sources.map(({ place }) => place) : [],
  };
}
