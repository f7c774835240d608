/** Image lookups of a person's command from this machine, cached between its runs. */
import { mkdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { writeProblem } from '../../src/files/read.ts';
import { createRequestOf } from '../../src/images/facts/facts.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { toggle } from '../program/flag.ts';
import { close, type CliContext } from '../program/context.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openFactsCache } from './image-facts.ts';
import { homeDirectory, openInspection } from './inspection.ts';

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
  const { inspector: source, tags, resolvesShortNames } = opened.adopt(await opening, close);
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
