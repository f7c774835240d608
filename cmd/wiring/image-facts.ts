/**
 * Image facts of a subcommand: a cache in front of the agents, or of registries without `--agents`. Those of a
 * person's command are cached between its runs.
 */
import { join, isAbsolute } from 'node:path';
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
import { close, type CliContext } from '../program/context.ts';
import { derived } from '../../src/policy/configuration/live.ts';
import { openFleet } from './fleet.ts';
import { openInspection, type InspectionOptions, homeDirectory } from './inspection.ts';
import { mkdir } from 'node:fs/promises';
import { writeProblem } from '../../src/files/read.ts';
import { toggle } from '../program/flag.ts';
import type { Invocation } from '../program/subcommand.ts';

const stateFile = 'image-facts.ndjson';

interface FactsCacheOptions {
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
  const file = stateDir === undefined ? undefined : new FactsFile({ path: join(stateDir, stateFile), log });
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
    const count = await file.load(cache);
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

interface ImageFactsOptions extends InspectionOptions {
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
  const source = 'fleet' in own ? own.fleet : own.source;
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

export const cacheFlags = {
  noCache: toggle('Neither reads nor writes the cache in `$XDG_CACHE_HOME/archwright`.'),
};

/** Older tags are compared with their registry, by a request that registries do not count. Digests stay. */
const tagCacheMs = 3_600_000;
/** Facts of 20,000 images. */
const maxCacheBytes = 16 * 1_048_576;

/** @param opened closes what this opens, and writes the cache @returns `tags` are not cached */
export async function openCachedLookups(
  { flags, io, say, stop }: Pick<Invocation<typeof cacheFlags>, 'flags' | 'io' | 'say' | 'stop'>,
  { configuration, dockerConfigs, log, metrics }: CliContext,
  opened: AsyncDisposableStack,
) {
  const settings: Configuration = {
    ...configuration,
    ifNotPresentCacheTime: Math.min(configuration.ifNotPresentCacheTime, tagCacheMs),
    revalidateInterval: Math.min(configuration.ifNotPresentCacheTime, tagCacheMs),
    cacheSize: Math.min(configuration.cacheSize, maxCacheBytes),
  };
  const current = (): Configuration => settings;
  const opening = openInspection({ configuration: current, dockerConfigs, env: io.env, log, stop });
  const { source, tags, resolvesShortNames } = opened.adopt(await opening, close);
  const stateDir = flags.noCache ? undefined : await cacheDirectory(io, say);
  const caching = openFactsCache({ configuration: current, source, stateDir, log, metrics });
  const cache = opened.adopt(await caching, close);
  const requestOf = createRequestOf(current, settings.serviceAccountTokens, resolvesShortNames);
  return { cache, requestOf, tags };
}

/** XDG Base Directory Specification: a relative path is ignored. @returns undefined if it cannot be made */
async function cacheDirectory(io: Invocation['io'], say: Invocation['say']): Promise<string | undefined> {
  const { XDG_CACHE_HOME: home = '' } = io.env;
  const directory = join(isAbsolute(home) ? home : join(homeDirectory(), '.cache'), 'archwright');
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return directory;
  } catch (error) {
    say(`answers are not cached: ${directory}: ${writeProblem(error)}`, 'note');
    return undefined;
  }
}
