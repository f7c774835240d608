/**
 * containerd's configuration: config.toml and its imports, migrated to containerd's version and merged in order (containerd
 * `cmd/containerd/server/config/config.go` LoadConfig). There is no drop-in directory unless a file imports it.
 */
import { dirname, isAbsolute, join } from 'node:path';
import { FileError } from '../../../src/files/error.ts';
import { readBounded } from '../../../src/files/read.ts';
import {
  imagesTableOf,
  criPlugin,
  imagesPlugin,
  migrateConfigFile,
  renameConfigFile,
  parseConfigFile,
  type ConfigFile,
} from './config-file.ts';
import { glob } from './glob.ts';
import { cleanPath } from '../../go/url.ts';
import { ConfigFileError, InvalidConfig } from '../config-error.ts';
import type { ContainerdRules } from './rules.ts';
import { isTable, tomlText, type Table } from './toml.ts';

/** containerd's own default configuration has 10 KiB. */
const maxConfigBytes = 1_048_576;
/** Imported files; nodes have a handful. */
const maxFiles = 200;

export interface LoadedConfig extends ConfigFile {
  /** Paths in the order of reading. */
  readonly files: readonly string[];
}

/**
 * Loads a configuration, breadth first. A file that is imported twice counts once.
 * @param hostRoot directory that stands for `/`
 * @throws FileError `missing` if the first file is missing
 * @throws ConfigFileError if containerd would not start
 */
export async function loadConfig(
  path: string,
  rules: ContainerdRules,
  hostRoot?: string,
): Promise<LoadedConfig> {
  const files: string[] = [];
  const waiting = [path];
  const together = rules.migrates && !rules.migratesEachFile;
  let merged: ConfigFile = together ? { ...emptyConfig, version: rules.configVersion } : emptyConfig;
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (files.includes(next)) continue;
    if (files.length === maxFiles) throw new ConfigFileError(path, `it imports more than ${maxFiles} files`);
    const text = await readConfig(next, files.length === 0, hostRoot);
    try {
      const file = parseConfigFile(tomlText(text));
      merged = mergeConfig(merged, prepare(file, merged.version, rules), rules);
      waiting.push(...(await resolveImports(next, file.imports, rules, hostRoot)));
    } catch (error) {
      throw configError(next, error);
    }
    files.push(next);
  }
  try {
    validateConfig(merged, rules);
    if (together) merged = migrateConfigFile(merged, rules.configVersion);
  } catch (error) {
    throw configError(path, error);
  }
  return { ...merged, files };
}

/** @param version of the merged files so far */
function prepare(file: ConfigFile, version: number, rules: ContainerdRules): ConfigFile {
  if (!rules.migrates) return file;
  if (rules.migratesEachFile) return migrateConfigFile(file, rules.configVersion);
  return file.version === 0 || file.version === 1 ? renameConfigFile(file, version) : file;
}

/** The table of the CRI plugin that contains `registry`. */
export function imagesTable(config: ConfigFile, rules: ContainerdRules): Table {
  return imagesTableOf(config.plugins, config.version, rules);
}

/** Whether the CRI plugin, which serves the kubelet, is disabled. Packages of Docker disable it. */
export function isCriDisabled({ disabledPlugins, version }: ConfigFile, rules: ContainerdRules): boolean {
  const ids = rules.migrates ? [criPlugin, imagesPlugin] : version < 2 ? ['cri'] : [criPlugin];
  return ids.some((id) => disabledPlugins.includes(id));
}

/**
 * Paths of imports. Relative paths start at the importing file. A path with a star is a pattern.
 * @throws InvalidConfig
 */
export async function resolveImports(
  parent: string,
  imports: readonly string[],
  rules: ContainerdRules,
  hostRoot?: string,
): Promise<string[]> {
  const found: string[] = [];
  for (const written of imports) {
    const isPattern = written.includes('*');
    // In 1.6, a relative pattern starts at the working directory of the service.
    const base = isPattern && !rules.relativeGlobs ? '/' : dirname(parent);
    const path = isAbsolute(written) ? cleanPath(written) : join(base, written);
    if (isPattern) found.push(...(await glob(path, hostRoot)));
    else found.push(path);
  }
  return found;
}

/** A later file over an earlier one. Top-level lists are united. */
export function mergeConfig(into: ConfigFile, from: ConfigFile, rules: ContainerdRules): ConfigFile {
  return {
    version: from.version === 0 ? into.version : from.version,
    root: from.root === '' ? into.root : from.root,
    imports: union(into.imports, from.imports),
    disabledPlugins: union(into.disabledPlugins, from.disabledPlugins),
    requiredPlugins: union(into.requiredPlugins, from.requiredPlugins),
    plugins: rules.mergesPlugins
      ? mergeTables(into.plugins, from.plugins)
      : { ...into.plugins, ...from.plugins },
  };
}

const emptyConfig: ConfigFile = {
  version: 0,
  root: '',
  imports: [],
  disabledPlugins: [],
  requiredPlugins: [],
  plugins: {},
};

/** Tables are merged. Any other value is replaced, also by an empty one. The parser limits the depth. */
function mergeTables(into: Table, from: Table): Table {
  const merged = new Map(Object.entries(into));
  for (const [key, value] of Object.entries(from)) {
    const before = merged.get(key);
    merged.set(key, isTable(before) && isTable(value) ? mergeTables(before, value) : value);
  }
  return Object.fromEntries(merged);
}

function union(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])];
}

/** @throws InvalidConfig */
function validateConfig(
  { version, disabledPlugins, requiredPlugins, plugins }: ConfigFile,
  rules: ContainerdRules,
): void {
  if (rules.refusesNewerFiles && version > rules.configVersion) {
    throw new InvalidConfig(
      'invalid',
      `its version ${version} is newer than ${rules.configVersion}, the newest that this containerd reads`,
    );
  }
  // Up to 1.7, names in files of version 1 are not checked.
  if (!rules.migrates && version < 2) return;
  const parts = rules.migrates ? 2 : 4;
  const ids = [...disabledPlugins, ...requiredPlugins, ...(rules.migrates ? [] : Object.keys(plugins))];
  const short = ids.find((id) => id.split('.').length < parts);
  if (short !== undefined)
    throw new InvalidConfig('invalid', `the plugin ${JSON.stringify(short)} must have its full name`);
}

async function readConfig(path: string, isFirst: boolean, root: string | undefined): Promise<Buffer> {
  try {
    return await readBounded(path, { maxBytes: maxConfigBytes, root });
  } catch (error) {
    if (isFirst && error instanceof FileError && error.code === 'missing') throw error;
    throw configError(path, error);
  }
}

function configError(path: string, error: unknown): unknown {
  if (error instanceof FileError) return new ConfigFileError(path, error.reason, error);
  return error instanceof InvalidConfig ? new ConfigFileError(path, error.message, error) : error;
}
