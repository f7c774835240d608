/** Image facts of a subcommand: a cache in front of the agents, or of registries without `--agents`. */
import { join } from 'node:path';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { FactsFile } from '../../src/images/cache/facts-file.ts';
import { type ImageFacts, type ImageFactsSource, createRequestOf } from '../../src/images/facts/facts.ts';
import type { Reference } from '../../src/images/references/reference.ts';
import { compileRegistryRules } from '../../src/images/sources/registry-rules.ts';
import { compileOverrides, type Overrides } from '../../src/images/sources/overrides.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { NamedObject } from '../../src/kube/watch/reflector.ts';
import { close } from '../program/context.ts';
import { derived } from '../../src/policy/configuration/live.ts';
import { openFleet } from './fleet.ts';
import { openInspection, type InspectionOptions } from './inspection.ts';

export interface FactsCacheOptions {
  readonly configuration: () => Configuration;
  readonly source: ImageFactsSource;
  /** Whether `source` is the fleet, whose agents limit the requests to each registry themselves. */
  readonly isFleet?: boolean;
  /** Directory of the state file. Without one, facts do not survive a restart. */
  readonly stateDir?: string | undefined;
  /** Default: as a webhook needs it. */
  readonly concurrentLookups?: number;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Creates the cache and loads the state file, if there is one. Close it at the end. */
export async function openFactsCache(options: FactsCacheOptions): Promise<FactsCache> {
  const { configuration, source, isFleet = false, stateDir, concurrentLookups, log, metrics } = options;
  const { cacheSize, inspectTimeout, maxRequestsPerRegistry } = configuration();
  const path = stateDir === undefined ? undefined : join(stateDir, 'image-facts.ndjson');
  const file = path === undefined ? undefined : new FactsFile({ path, log });
  const cache = new FactsCache({
    source,
    refreshAfterMs: () => configuration().revalidateInterval,
    overrides: derived(configuration, overridesOf),
    maxBytes: cacheSize,
    lookupTimeoutMs: inspectTimeout,
    file,
    metrics,
    log,
    ...(concurrentLookups !== undefined && { concurrentLookups }),
    // Each lookup sends its requests one after the other.
    ...(!isFleet && { lookupsPerHost: maxRequestsPerRegistry }),
  });
  if (file) {
    const count = await file.load((facts) => cache.learn(facts));
    log.info({ count }, 'loaded image facts from the state file');
  }
  return cache;
}

/** `[[imageOverrides]]` and the rules on registries. Matching costs more than the rest of a request. */
function overridesOf(configuration: Configuration): Overrides {
  const own = compileOverrides(configuration.imageOverrides, systemClock);
  const refused = compileRegistryRules(configuration, systemClock);
  const ofName = remembered((image, reference) => own.find(image, reference) ?? refused(image, reference));
  const ofShortName = remembered((image, reference) => own.find(image, reference));
  const find: Overrides['find'] = (image, reference, shortName) =>
    (shortName === undefined ? ofName : ofShortName)(image, reference);
  return { find, levelOf: own.levelOf };
}

function remembered(find: Overrides['find']): Overrides['find'] {
  const found = new WeakMap<Reference, ImageFacts | 'none'>();
  return (image, reference) => {
    const known = found.get(reference) ?? find(image, reference) ?? 'none';
    found.set(reference, known);
    return known === 'none' ? undefined : known;
  };
}

export interface ImageFactsOptions extends InspectionOptions {
  readonly metrics: Metrics;
  readonly client: KubeClient | undefined;
  /** The Secret with the client certificate for agents, if `agentTlsDir` is not set. */
  readonly clientSecret?: NamedObject | undefined;
}

/** @param opened closes what this opens */
export async function openImageFacts(options: ImageFactsOptions, opened: AsyncDisposableStack) {
  const { configuration, client, clientSecret, log, metrics } = options;
  const open = await openFleet({ ...configuration(), client, clientSecret, log, metrics });
  const own = opened.adopt(open ?? (await openInspection(options)), close);
  const source = 'fleet' in own ? own.fleet : own.inspector;
  const names = 'fleet' in own ? own.fleet : own;
  const isFleet = open !== undefined;
  const cache = opened.adopt(await openFactsCache({ configuration, source, isFleet, log, metrics }), close);
  return {
    cache,
    requestOf: createRequestOf(configuration, configuration().serviceAccountTokens, names.resolvesShortNames),
    fleet: open?.fleet,
    /** Where this machine's credentials are; empty if agents look up images. */
    places: 'sources' in own ? own.sources.map(({ place }) => place) : [],
  };
}
