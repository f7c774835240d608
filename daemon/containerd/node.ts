/**
 * The configuration of this node's containerd: files, version and registry settings, read again after each
 * change. (containerd reads config.toml only when it starts. Using a change at once is right after its
 * restart, and nearly always before.)
 */
import { join } from 'node:path';
import type { Problem } from '../../src/credentials/credential.ts';
import { statPath, undefinedIfMissing } from '../../src/files/read.ts';
import { imagesTable, isCriDisabled, loadConfig } from './config/config.ts';
import type { VersionFinder } from '../program-version.ts';
import { programsFor } from './config/find-version.ts';
import {
  effectiveConfigPath,
  parseAuth,
  readRegistry,
  searchRoots,
  usesLocalPull,
  validateRegistry,
  type Registry,
} from './config/registry.ts';
import { rulesFor, type ContainerdRules } from './config/rules.ts';
import { fieldsOf, inFile, InvalidConfig } from '../toml.ts';

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
 * @param version the setting `containerdVersion`; replaces the version of the program
 * @throws ConfigFileError if containerd would not start
 */
export async function readNodeConfig(
  candidates: readonly string[],
  version: string | undefined,
  hostRoot: string,
  findVersion: VersionFinder,
): Promise<NodeConfig> {
  const configFile = await firstThatExists(candidates, hostRoot);
  const found = version === undefined ? await findVersion(programsFor(configFile ?? '')) : { version };
  const rules = rulesFor(found.version);
  const problems: Problem[] = found.problem ? [found.problem] : [];
  // It may have been deleted in the meantime.
  const config =
    configFile === undefined
      ? undefined
      : await loadConfig(configFile, rules, hostRoot).catch(undefinedIfMissing);
  return await inFile(configFile ?? '', () => {
    const images = config ? imagesTable(config, rules) : {};
    const table = fieldsOf(images, '').table('registry') ?? {};
    const registry = validateRegistry(readRegistry(table, rules));
    const localPull = usesLocalPull(images, rules);
    const roots = searchRoots(effectiveConfigPath(registry, rules), localPull);
    const servesKubelet = config === undefined || !isCriDisabled(config, rules);
    if (configFile !== undefined && config) {
      if (!servesKubelet) problems.push({ origin: configFile, message: criDisabled });
      problems.push(...invalidCredentials(configFile, registry));
    }
    const files = config?.files ?? [];
    const { version: runs } = found;
    return { configFile, files, version: runs, rules, registry, roots, localPull, servesKubelet, problems };
  });
}

/** The files of a candidate: itself, or `config.toml` in it if it may be a directory (Noe's values). */
export function filesOfCandidate(path: string): readonly string[] {
  return path.endsWith('.toml') ? [path] : [join(path, 'config.toml'), path];
}

async function firstThatExists(paths: readonly string[], hostRoot: string): Promise<string | undefined> {
  for (const path of paths) {
    // A file that exists but cannot be examined is containerd's configuration too.
    const exists = await statPath(path, hostRoot).then(
      (stats) => stats !== undefined && !stats.isDirectory(),
      () => true,
    );
    if (exists) return path;
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
