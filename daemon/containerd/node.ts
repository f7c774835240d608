/**
 * The configuration of this node's containerd: files, version and registry settings, read again after each change. (containerd reads
 * config.toml only when it starts. Using a change at once is right after its restart, and nearly always before.)
 */
import { FileError } from '../../src/files/error.ts';
import { statPath } from '../../src/files/read.ts';
import { parseAuth } from './config/auth.ts';
import { ConfigFileError, InvalidConfig } from './config-error.ts';
import { imagesTable, isCriDisabled, loadConfig, type LoadedConfig } from './config/config.ts';
import type { VersionFinder } from './config/find-version.ts';
import { programsFor } from './config/default-paths.ts';
import {
  effectiveConfigPath,
  readRegistry,
  searchRoots,
  usesLocalPull,
  validateRegistry,
  type Registry,
} from './config/registry.ts';
import { rulesFor, type ContainerdRules } from './config/rules.ts';
import { fieldsOf } from './config/toml.ts';

/** A problem in a file, for people. */
export interface NodeProblem {
  readonly origin: string;
  readonly message: string;
}

export interface NodeConfig {
  /** The configuration in force; undefined without a config.toml. */
  readonly configFile: string | undefined;
  /** config.toml and its imports. */
  readonly files: readonly string[];
  readonly version: string | undefined;
  readonly rules: ContainerdRules;
  readonly registry: Registry;
  /** Directories of hosts, in order. */
  readonly roots: readonly string[];
  /** containerd's client pulls images, not its transfer service. */
  readonly localPull: boolean;
  readonly problems: readonly NodeProblem[];
}

export interface NodeConfigOptions {
  /** Paths of config.toml inside the host root; the first that exists counts. */
  readonly candidates: readonly string[];
  /** The setting `containerdVersion`; replaces the version of the program. */
  readonly version: string | undefined;
  readonly hostRoot: string;
  readonly finder: VersionFinder;
}

/**
 * Reads the configuration of the node's containerd.
 * @throws ConfigFileError if containerd would not start
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
      problems.push(...warnings(configFile, config, rules), ...invalidCredentials(configFile, registry));
    }
    return { ...about, registry, roots, localPull, problems };
  } catch (error) {
    throw error instanceof InvalidConfig
      ? new ConfigFileError(configFile ?? '', error.message, error)
      : error;
  }
}

async function firstThatExists(paths: readonly string[], hostRoot: string): Promise<string | undefined> {
  for (const path of paths) {
    // A file that exists but cannot be examined is containerd's configuration too.
    const exists = await statPath(path, hostRoot).then(Boolean, () => true);
    if (exists) return path;
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
    // Deleted in the meantime.
    if (error instanceof FileError && error.code === 'missing') return undefined;
    throw error;
  }
}

function warnings(origin: string, config: LoadedConfig, rules: ContainerdRules): NodeProblem[] {
  if (!isCriDisabled(config, rules)) return [];
  const message =
    'it disables the CRI plugin, so the kubelet does not use this containerd; set containerdConfigPathCandidates to the configuration of the kubelet’s containerd';
  return [{ origin, message }];
}

function invalidCredentials(origin: string, { configs }: Registry): NodeProblem[] {
  return [...configs].flatMap(([host, { auth }]) => {
    try {
      if (auth) parseAuth(auth, host);
      return [];
    } catch (error) {
      if (!(error instanceof InvalidConfig)) throw error;
      return [{ origin, message: `registry.configs."${host}".auth is left out: ${error.message}` }];
    }
  });
}
