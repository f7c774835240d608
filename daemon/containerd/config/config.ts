/**
 * containerd's configuration: config.toml and what it imports, each file brought up to containerd's version and merged over the
 * ones before it (containerd `cmd/containerd/server/config/config.go` LoadConfig). There is no directory of drop-ins but what a file
 * imports.
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
import { glob, GlobError } from './glob.ts';
import { cleanPath } from '../hosts/go-url.ts';
import { ConfigInvalid } from './registry.ts';
import type { ContainerdRules } from './rules.ts';
import { isTable, TomlRefused, tomlText, type Table } from './toml.ts';

/** containerd's own default configuration has 10 KiB. */
const maxConfigBytes = 1_048_576;
/** Files that import each other; machines have a handful. */
const maxFiles = 200;

export interface LoadedConfig extends ConfigFile {
  /** In the order in which they were read. */
  readonly files: readonly string[];
}

/** A configuration with which containerd does not start; `where` is the file. */
export class ConfigError extends Error {
  readonly code = 'invalid';
  readonly temporary = false;
  readonly where: string;
  /** The message without the file. */
  readonly reason: string;
  constructor(where: string, reason: string, cause?: unknown) {
    super(`${where}: ${reason}`, cause === undefined ? undefined : { cause });
    this.name = 'ConfigError';
    this.where = where;
    this.reason = reason;
  }
}

/**
 * Loads a configuration, breadth first; a file that is imported twice counts once.
 * @param hostRoot directory that stands for `/`
 * @throws FileError `missing` where the first file is
 * @throws ConfigError for all that keeps containerd from starting
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
    if (files.length === maxFiles) throw new ConfigError(path, `it imports more than ${maxFiles} files`);
    const text = await readConfig(next, files.length === 0, hostRoot);
    try {
      const file = parseConfigFile(tomlText(text));
      merged = mergeConfig(merged, readyToMerge(file, merged.version, rules), rules);
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

/** @param version of the files before */
function readyToMerge(file: ConfigFile, version: number, rules: ContainerdRules): ConfigFile {
  if (!rules.migrates) return file;
  if (rules.migratesEachFile) return migrateConfigFile(file, rules.configVersion);
  return file.version === 0 || file.version === 1 ? renameConfigFile(file, version) : file;
}

/** The table of the CRI plugin that holds `registry`. */
export function imagesTable(config: ConfigFile, rules: ContainerdRules): Table {
  return imagesTableOf(config.plugins, config.version, rules);
}

/** Whether the plugin that serves the kubelet is switched off, as packages of Docker do. */
export function isCriDisabled({ disabledPlugins, version }: ConfigFile, rules: ContainerdRules): boolean {
  const ids = rules.migrates ? [criPlugin, imagesPlugin] : version < 2 ? ['cri'] : [criPlugin];
  return ids.some((id) => disabledPlugins.includes(id));
}

/**
 * Paths of imports: relative ones start at the importing file; only a star makes a pattern of one.
 * @throws GlobError
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
    // 1.6 hands a pattern over as it is, so it starts where the service was started.
    const base = isPattern && !rules.relativeGlobs ? '/' : dirname(parent);
    const path = isAbsolute(written) ? cleanPath(written) : join(base, written);
    if (isPattern) found.push(...(await glob(path, hostRoot)));
    else found.push(path);
  }
  return found;
}

/** A later file over an earlier one; lists at the top are united. */
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

/** Tables are merged; anything else is replaced, also by something empty. The parser has limited how deep they are. */
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

/** @throws ConfigInvalid */
function validateConfig(
  { version, disabledPlugins, requiredPlugins, plugins }: ConfigFile,
  rules: ContainerdRules,
): void {
  if (rules.refusesNewerFiles && version > rules.configVersion) {
    throw new ConfigInvalid(
      `its version ${version} is newer than ${rules.configVersion}, the newest that this containerd knows`,
    );
  }
  // Until 1.7, names of version 1 are not checked.
  if (!rules.migrates && version < 2) return;
  const parts = rules.migrates ? 2 : 4;
  const ids = [...disabledPlugins, ...requiredPlugins, ...(rules.migrates ? [] : Object.keys(plugins))];
  const short = ids.find((id) => id.split('.').length < parts);
  if (short !== undefined)
    throw new ConfigInvalid(`the plugin ${JSON.stringify(short)} must have its full name`);
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
  if (error instanceof FileError) return new ConfigError(path, error.message.replace(`${path}: `, ''), error);
  const known = error instanceof TomlRefused || error instanceof ConfigInvalid || error instanceof GlobError;
  return known ? new ConfigError(path, error.message, error) : error;
}
