/** The image facts memory: times, size and overrides come from the live configuration. */
import { join } from 'node:path';
import { FactsFile } from '../../src/images/memory/disk.ts';
import type { ImageFactsSource } from '../../src/images/facts/facts.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
import { createFactsMetrics } from '../../src/images/memory/metrics.ts';
import { compileOverrides, type Overrides } from '../../src/images/sources/overrides.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { liveFreshness } from './inspection.ts';

export interface MemoryOptions {
  readonly configuration: () => Configuration;
  readonly inspector: ImageFactsSource;
  /** Directory of the state file. Without one, facts do not survive a restart. */
  readonly stateDir?: string | undefined;
  readonly log: Log;
  readonly metrics: Metrics;
}

const stateFile = 'image-facts.ndjson';

/** Creates the memory and loads the state file, if there is one. Close it at the end. */
export async function openMemory(options: MemoryOptions): Promise<FactsMemory> {
  const { configuration, inspector, stateDir, log, metrics } = options;
  const { cacheSize, inspectTimeout } = configuration();
  const file: FactsFile | undefined =
    stateDir === undefined ? undefined : new FactsFile({ path: join(stateDir, stateFile), log });
  const memory = new FactsMemory({
    source: inspector,
    log,
    freshness: liveFreshness(configuration),
    overrides: liveOverrides(configuration),
    maxBytes: cacheSize,
    lookupTimeoutMs: inspectTimeout,
    metrics: createFactsMetrics(metrics),
    ...(file && { file }),
  });
  if (file) {
    const count = await file.load((facts) => memory.learn(facts));
    log.info({ count }, 'loaded image facts from the state file');
  }
  return memory;
}

/** `[[imageOverrides]]` of the live configuration, compiled once per configuration. */
export function liveOverrides(configuration: () => Configuration): Overrides {
  let compiled: { readonly from: Configuration; readonly overrides: Overrides } | undefined;
  function current(): Overrides {
    const from = configuration();
    if (compiled?.from !== from) {
      compiled = { from, overrides: compileOverrides(from.imageOverrides, systemClock) };
    }
    return compiled.overrides;
  }
  return {
    find: (image, reference) => current().find(image, reference),
    get version() {
      return current().version;
    },
  };
}
