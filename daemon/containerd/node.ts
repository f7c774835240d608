/**
 * The configuration of this node's containerd: files, version and registry settings, read again after each
 * change. (containerd reads config.toml only when it starts. Using a change at once is right after its
 * restart, and nearly always before.)
 */
import { join } from 'node:path';
import type { MatchedCredential, Problem } from '../../src/credentials/credential.ts';
import { credentialId } from '../../src/credentials/identity.ts';
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
  /** `configs."<host>".auth`, by the host of the request, in every namespace. */
  readonly credentials: ReadonlyMap<string, MatchedCredential>;
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
    if (!servesKubelet) problems.push({ origin: configFile ?? '', message: criDisabled });
    const credentials = credentialsOf(registry, configFile ?? '', problems);
    const common = { configFile, files: config?.files ?? [], version, rules, problems };
    return { ...common, registry, credentials, roots, localPull, servesKubelet };
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

/** @param problems gets those of the others */
function credentialsOf(
  { configs }: Registry,
  origin: string,
  problems: Problem[],
): NodeConfig['credentials'] {
  const found = new Map<string, MatchedCredential>();
  for (const [key, { auth = {} }] of configs) {
    try {
      const credential = parseAuth(auth);
      if (credential)
        found.set(key, { credential, source: 'containerd', key, origin, id: credentialId(credential) });
    } catch (error) {
      if (!(error instanceof InvalidConfig)) throw error;
      problems.push({ origin, message: `registry.configs."${key}".auth ignored: ${error.message}` });
    }
  }
  return found;
}
