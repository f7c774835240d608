/**
 * What is configured for the containerd of this node: which configuration, which version, which registry settings. Read as a whole, and
 * again whenever a file may have changed. (containerd itself reads config.toml when it starts; taking a change at once is right
 * after its restart, and nearly always before.)
 */
import { FileError } from '../../src/files/error.ts';
import { resolveInRoot } from '../../src/files/root.ts';
import { AuthInvalid, parseAuth } from './config/auth.ts';
import { ConfigError, imagesTable, isCriDisabled, loadConfig, type LoadedConfig } from './config/config.ts';
import type { VersionFinder } from './config/find-version.ts';
import { programsFor } from './config/default-paths.ts';
import {
  ConfigInvalid,
  effectiveConfigPath,
  readRegistry,
  searchRoots,
  usesLocalPull,
  validateRegistry,
  type Registry,
} from './config/registry.ts';
import { rulesFor, type ContainerdRules } from './config/rules.ts';
import { fieldsOf, TomlRefused } from './config/toml.ts';

/** A fault for people; `origin` is a file. */
export interface NodeProblem {
  readonly origin: string;
  readonly message: string;
}

export interface NodeConfig {
  /** The configuration that counts; undefined where there is none. */
  readonly configFile: string | undefined;
  /** All files of it. */
  readonly files: readonly string[];
  readonly version: string | undefined;
  readonly rules: ContainerdRules;
  readonly registry: Registry;
  /** Directories with hosts, in order. */
  readonly roots: readonly string[];
  /** Images are pulled by containerd's client, not by its transfer service. */
  readonly localPull: boolean;
  readonly problems: readonly NodeProblem[];
}

export interface NodeConfigOptions {
  /** Paths of config.toml of which the first that exists counts, inside the host root. */
  readonly candidates: readonly string[];
  /** As set by hand; goes before what the program says. */
  readonly version: string | undefined;
  readonly hostRoot: string;
  readonly finder: VersionFinder;
}

/**
 * Reads the configuration of the node's containerd.
 * @throws ConfigError where containerd would not start with it
 */
export async function readNodeConfig(options: NodeConfigOptions): Promise<NodeConfig> {
  const { candidates, hostRoot, finder } = options;
  const configFile = await firstThatExists(candidates, hostRoot);
  const programs = programsFor(configFile ?? '');
  const found = options.version === undefined ? await finder.find(programs) : { version: options.version };
  const rules = rulesFor(found.version);
  const problems: NodeProblem[] = found.problem
    ? [{ origin: found.problem.where, message: found.problem.message }]
    : [];
  const config = configFile === undefined ? undefined : await load(configFile, rules, hostRoot);
  const about = { configFile, files: config?.files ?? [], version: found.version, rules };
  try {
    const images = config ? imagesTable(config, rules) : {};
    const table = fieldsOf(images, '').table('registry') ?? {};
    const registry = validateRegistry(readRegistry(table, rules));
    const localPull = usesLocalPull(images, rules);
    const roots = searchRoots(effectiveConfigPath(registry, rules), localPull);
    if (configFile !== undefined && config) {
      problems.push(...warnings(configFile, config, rules), ...badCredentials(configFile, registry));
    }
    return { ...about, registry, roots, localPull, problems };
  } catch (error) {
    const known = error instanceof TomlRefused || error instanceof ConfigInvalid;
    throw known ? new ConfigError(configFile ?? '', error.message, error) : error;
  }
}

async function firstThatExists(paths: readonly string[], hostRoot: string): Promise<string | undefined> {
  for (const path of paths) {
    try {
      await resolveInRoot(hostRoot, path);
      return path;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      // Found or not, one that cannot be looked at is one that containerd has.
      if (error.code !== 'missing') return path;
    }
  }
  return undefined;
}

async function load(
  path: string,
  rules: ContainerdRules,
  hostRoot: string,
): Promise<LoadedConfig | undefined> {
  try {
    return await loadConfig(path, rules, hostRoot);
  } catch (error) {
    // Gone since it was looked for.
    if (error instanceof FileError && error.code === 'missing') return undefined;
    throw error;
  }
}

function warnings(origin: string, config: LoadedConfig, rules: ContainerdRules): NodeProblem[] {
  if (!isCriDisabled(config, rules)) return [];
  const message =
    'it disables the CRI plugin, so no kubelet pulls by this containerd; name another one by containerdConfigPathCandidates';
  return [{ origin, message }];
}

function badCredentials(origin: string, { configs }: Registry): NodeProblem[] {
  return [...configs].flatMap(([host, { auth }]) => {
    try {
      if (auth) parseAuth(auth, host);
      return [];
    } catch (error) {
      if (!(error instanceof AuthInvalid)) throw error;
      return [{ origin, message: `registry.configs."${host}".auth is left out: ${error.message}` }];
    }
  });
}
