/**
 * The configuration of this node's containerd: files, version and registry settings, read again after each
 * change. (containerd reads config.toml only when it starts. Using a change at once is right after its
 * restart, and nearly always before.)
 */
import { join } from 'node:path';
import type { Problem } from '../../src/credentials/credential.ts';
import { orBroken, type NodeFiles } from '../node-files.ts';
import type { VersionFinder } from '../node-programs.ts';
import { ConfigFileError, fieldsOf, inFile, InvalidConfig } from '../toml.ts';
import { imagesTable, isCriDisabled, loadConfig } from './config/config.ts';
import { programsFor, rulesFor, type ContainerdRules } from './config/rules.ts';
import {
  effectiveConfigPath,
  parseAuth,
  readRegistry,
  searchRoots,
  usesLocalPull,
  validateRegistry,
  type Registry,
} from './config/registry.ts';

export interface NodeConfig {
  readonly configFile: string | undefined;
  readonly files: readonly string[];
  readonly version: string | undefined;
  readonly rules: ContainerdRules;
  readonly registry: Registry;
  readonly roots: readonly string[];
  /** containerd's client pulls images, not its transfer service. */
  readonly localPull: boolean;
  /** False if its CRI plugin is disabled: the kubelet does not use it. */
  readonly servesKubelet: boolean;
  readonly problems: readonly Problem[];
}

/**
 * @param candidates paths of config.toml inside the host root; the first that exists counts
 * @throws ConfigFileError if containerd would not start
 */
export async function loadNodeConfig(
  candidates: readonly string[],
  files: NodeFiles,
  findVersion: VersionFinder,
): Promise<NodeConfig> {
  const configFile = await firstThatExists(candidates, files);
  const { version, problem } = await findVersion(programsFor(configFile ?? ''));
  const rules = rulesFor(version);
  const problems: Problem[] = problem ? [problem] : [];
  const config = configFile === undefined ? undefined : await loadConfig(configFile, rules, files);
  return await inFile(configFile ?? '', () => {
    const images = config ? imagesTable(config, rules) : {};
    const table = fieldsOf(images, '').table('registry') ?? {};
    const registry = validateRegistry(readRegistry(table, rules));
    const localPull = usesLocalPull(images, rules);
    const roots = searchRoots(effectiveConfigPath(registry, rules), localPull);
    const servesKubelet = config === undefined || !isCriDisabled(config, rules);
    if (configFile !== undefined) {
      if (!servesKubelet) problems.push({ origin: configFile, message: criDisabled });
      problems.push(...invalidCredentials(configFile, registry));
    }
    const paths = config?.files ?? [];
    return { configFile, files: paths, version, rules, registry, roots, localPull, servesKubelet, problems };
  });
}

/** The files of a candidate: itself, or `config.toml` in it if it may be a directory (Noe's values). */
export function filesOfCandidate(path: string): readonly string[] {
  return path.endsWith('.toml') ? [path] : [join(path, 'config.toml'), path];
}

async function firstThatExists(paths: readonly string[], files: NodeFiles): Promise<string | undefined> {
  for (const path of paths) {
    const stats = await orBroken(path, () => files.stat(path));
    // A file that exists but cannot be examined is containerd's configuration too.
    if (stats instanceof ConfigFileError || stats?.isDirectory() === false) return path;
  }
  return undefined;
}

const criDisabled =
  'it disables the CRI plugin, so the kubelet does not use this containerd; set containerdConfigPathCandidates to the configuration of the kubelet’s containerd';

function invalidCredentials(origin: string, { configs }: Registry): Problem[] {
  return [...configs].flatMap(([host, { auth }]) => {
    try {
      if (auth) parseAuth(auth);
      return [];
    } catch (error) {
      if (!(error instanceof InvalidConfig)) throw error;
      return [{ origin, message: `registry.configs."${host}".auth ignored: ${error.message}` }];
    }
  });
}
