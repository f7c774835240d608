/**
 * containerd's configuration: config.toml and its imports, migrated to containerd's version and merged in
 * order (containerd `cmd/containerd/server/config/config.go` LoadConfig, `plugins/cri/images/plugin.go`
 * configMigration), reduced to the settings for images. There is no drop-in directory unless a file imports
 * it.
 */
import { dirname, isAbsolute, join } from 'node:path';
import { cleanPath } from '../../go.ts';
import { orBroken, type NodeFiles } from '../../node-files.ts';
import type { ContainerdRules } from './rules.ts';
import { isTable } from '../../../src/policy/value-kinds/plain.ts';
import {
  ConfigFileError,
  fieldsOf,
  inFile,
  invalid,
  parseTable,
  tablesOf,
  tomlText,
  type Table,
} from '../../toml.ts';

/** containerd's own default configuration has 10 KiB. */
const maxConfigBytes = 1_048_576;
/** Imported files, and matches of one pattern; nodes have a handful. */
const maxFiles = 200;
/** Drop-in directories contain a handful of files. */
const maxEntries = 1000;

/** The CRI plugin up to containerd 1.7, and in files of version 2. Version 1 has its short name. */
const criPlugin = 'io.containerd.grpc.v1.cri';
/** The part of the CRI plugin for images, since 2.0. */
const imagesPlugin = 'io.containerd.cri.v1.images';
const shortName = 'cri';

export interface ConfigFile {
  /** 0 if the file has none, which means 1. */
  readonly version: number;
  readonly imports: readonly string[];
  readonly disabledPlugins: readonly string[];
  readonly requiredPlugins: readonly string[];
  readonly plugins: Table;
}

/**
 * Loads a configuration, breadth first. A file that is imported twice counts once.
 * @throws ConfigFileError if containerd would not start
 */
export async function loadConfig(
  path: string,
  rules: ContainerdRules,
  files: NodeFiles,
): Promise<ConfigFile & { readonly files: readonly string[] }> {
  const paths = new Set([path]);
  const together = rules.migrates && !rules.migratesEachFile;
  let merged = parseConfigFile('');
  if (together) merged = { ...merged, version: rules.configVersion };
  // What is added meanwhile is visited too.
  for (const next of paths) {
    const bytes = await files.read(next, maxConfigBytes);
    await inFile(next, async () => {
      const file = parseConfigFile(tomlText(bytes ?? Buffer.of()));
      merged = mergeConfig(merged, prepare(file, merged.version, rules), rules);
      for (const each of await resolveImports(next, file.imports, rules, files)) paths.add(each);
    });
    if (paths.size > maxFiles) throw new ConfigFileError(path, `it imports more than ${maxFiles} files`);
  }
  return await inFile(path, () => {
    validateConfig(merged, rules);
    const config = together ? migrateConfigFile(merged, rules.configVersion) : merged;
    return { ...config, files: [...paths] };
  });
}

/** Parses a file without migrating it; throws InvalidConfig. */
export function parseConfigFile(text: string): ConfigFile {
  const fields = fieldsOf(parseTable(text), '');
  const plugins = tablesOf(fields.table('plugins'), 'plugins', (table) => table);
  return {
    version: Number(fields.integer('version') ?? 0),
    imports: fields.texts('imports') ?? [],
    disabledPlugins: fields.texts('disabled_plugins') ?? [],
    requiredPlugins: fields.texts('required_plugins') ?? [],
    plugins: Object.fromEntries(plugins),
  };
}

/** @param version of the merged files so far */
function prepare(file: ConfigFile, version: number, rules: ContainerdRules): ConfigFile {
  if (!rules.migrates) return file;
  if (rules.migratesEachFile) return migrateConfigFile(file, rules.configVersion);
  return file.version === 0 || file.version === 1 ? { ...withFullNames(file), version } : file;
}

/**
 * Migrates a file to a version. The image settings of the old CRI plugin replace those of the new one, key by
 * key (`registry` as a whole). A file of that version stays as it is, whatever plugin ids it uses.
 * @param version containerd's own version of the configuration; 0 changes nothing
 * @throws InvalidConfig for a negative version
 */
export function migrateConfigFile(file: ConfigFile, version: number): ConfigFile {
  if (file.version < 0) throw invalid('`version` must not be negative');
  if (file.version >= version) return file;
  const named = file.version < 2 ? withFullNames(file) : file;
  return { ...named, version, plugins: withImagesPlugin(named.plugins) };
}

function withFullNames(file: ConfigFile): ConfigFile {
  return {
    ...file,
    plugins: Object.fromEntries(Object.entries(file.plugins).map(([id, table]) => [fullName(id), table])),
    disabledPlugins: file.disabledPlugins.map(fullName),
    requiredPlugins: file.requiredPlugins.map(fullName),
  };
}

/** Names without a dot are short names of version 1; their kinds are not told apart. */
function fullName(id: string): string {
  return id.includes('.') ? id : `io.containerd.grpc.v1.${id}`;
}

/** Keys that moved to the images plugin, as far as they are used here. */
const movedKeys = ['registry', 'max_concurrent_downloads', 'image_pull_with_sync_fs'];
const movedContainerdKeys = ['disable_snapshot_annotations', 'discard_unpacked_layers'];

function withImagesPlugin(plugins: Table): Table {
  const old = plugins[criPlugin];
  if (!isTable(old)) return plugins;
  const present = plugins[imagesPlugin];
  const inner = old['containerd'];
  // Upstream skips these keys without a table of runtimes.
  const moved = isTable(inner) && Object.hasOwn(inner, 'runtimes') ? pick(inner, movedContainerdKeys) : {};
  const images = { ...(isTable(present) ? present : {}), ...pick(old, movedKeys), ...moved };
  return { ...plugins, [imagesPlugin]: images };
}

function pick(table: Table, names: readonly string[]): Table {
  return Object.fromEntries(Object.entries(table).filter(([name]) => names.includes(name)));
}

/** The CRI plugin's table with `registry`. Up to 1.7, its id depends on the merged version. */
export function imagesTable(
  { plugins, version }: Pick<ConfigFile, 'plugins' | 'version'>,
  rules: ContainerdRules,
): Table {
  const table = plugins[rules.migrates ? imagesPlugin : version < 2 ? shortName : criPlugin];
  return isTable(table) ? table : {};
}

/** Whether the CRI plugin, which serves the kubelet, is disabled. Packages of Docker disable it. */
export function isCriDisabled({ disabledPlugins, version }: ConfigFile, rules: ContainerdRules): boolean {
  const ids = rules.migrates ? [criPlugin, imagesPlugin] : [version < 2 ? shortName : criPlugin];
  return ids.some((id) => disabledPlugins.includes(id));
}

/** Paths of imports, relative to the importing file; with a star, a pattern. @throws InvalidConfig */
export async function resolveImports(
  parent: string,
  imports: readonly string[],
  rules: ContainerdRules,
  files: NodeFiles,
): Promise<string[]> {
  const found: string[] = [];
  for (const written of imports) {
    const isPattern = written.includes('*');
    // In 1.6, a relative pattern starts at the working directory of the service.
    const base = isPattern && !rules.relativeGlobs ? '/' : dirname(parent);
    const path = isAbsolute(written) ? cleanPath(written) : join(base, written);
    found.push(...(isPattern ? await glob(path, files) : [path]));
  }
  return found;
}

/** A later file over an earlier one. Top-level lists are united. */
export function mergeConfig(into: ConfigFile, from: ConfigFile, rules: ContainerdRules): ConfigFile {
  return {
    version: from.version === 0 ? into.version : from.version,
    imports: [],
    disabledPlugins: [...new Set([...into.disabledPlugins, ...from.disabledPlugins])],
    requiredPlugins: [...new Set([...into.requiredPlugins, ...from.requiredPlugins])],
    plugins: rules.mergesPlugins
      ? mergeTables(into.plugins, from.plugins)
      : { ...into.plugins, ...from.plugins },
  };
}

/** Tables are merged. Any other value is replaced, also by an empty one. The parser limits the depth. */
function mergeTables(into: Table, from: Table): Table {
  const merged = new Map(Object.entries(into));
  for (const [key, value] of Object.entries(from)) {
    const before = merged.get(key);
    merged.set(key, isTable(before) && isTable(value) ? mergeTables(before, value) : value);
  }
  return Object.fromEntries(merged);
}

/** @throws InvalidConfig */
function validateConfig(config: ConfigFile, rules: ContainerdRules): void {
  const { version, disabledPlugins, requiredPlugins, plugins } = config;
  if (rules.refusesNewerFiles && version > rules.configVersion) {
    const newest = `${rules.configVersion}, the newest that this containerd reads`;
    throw invalid(`its version ${version} is newer than ${newest}`);
  }
  // Up to 1.7, names in files of version 1 are not checked.
  if (!rules.migrates && version < 2) return;
  const parts = rules.migrates ? 2 : 4;
  const ids = [...disabledPlugins, ...requiredPlugins, ...(rules.migrates ? [] : Object.keys(plugins))];
  const short = ids.find((id) => id.split('.').length < parts);
  if (short !== undefined) throw invalid(`the plugin ${JSON.stringify(short)} must have its full name`);
}

/**
 * Go's `filepath.Glob`: the matching paths, sorted within each directory. Directories that cannot be listed match nothing. A
 * leading dot in a name has no special meaning.
 * @param pattern absolute and clean
 * @throws InvalidConfig if Go refuses the pattern, or it matches too many files
 */
export async function glob(pattern: string, files: NodeFiles): Promise<readonly string[]> {
  let found = ['/'];
  for (const part of pattern.split('/').filter((name) => name !== '')) {
    const matcher = /[*?[\\]/.test(part) ? matcherOf(part) : undefined;
    const next: string[] = [];
    for (const dir of found) {
      const names = matcher ? await orBroken(dir, () => files.names(dir, maxEntries)) : [part];
      if (names instanceof ConfigFileError) continue;
      for (const name of names) {
        const path = join(dir, name);
        const isThere = matcher?.test(name) ?? (await orBroken(path, () => files.stat(path)));
        if (isThere && !(isThere instanceof ConfigFileError)) next.push(path);
      }
      if (next.length > maxFiles) throw invalid(`a pattern of imports matches more than ${maxFiles} files`);
    }
    found = next;
  }
  return found;
}

/** The rules of Go's `filepath.Match` for one part of a path. */
function matcherOf(part: string): RegExp {
  const token = /(\*+)|\?|\[(\^?)((?:(?:\\.|[^\\\]-])(?:-(?:\\.|[^\\\]-]))?)+)\]|\\(.)|([^*?[\\])/gsuy;
  let source = '';
  let end = 0;
  for (const [whole, stars, negated, range, escaped, plain] of part.matchAll(token)) {
    end += whole.length;
    if (stars !== undefined) source += '[^/]*';
    else if (whole === '?') source += '[^/]';
    else if (range === undefined) source += literal(escaped ?? plain ?? '');
    else source += `[${negated}${range.replaceAll(/\\(.)/gsu, (_, each: string) => literal(each))}]`;
  }
  try {
    if (end === part.length) return new RegExp(`^${source}$`, 'su');
  } catch {
    // A range that ends before it begins.
  }
  throw invalid('a pattern of imports is not valid: syntax error in pattern');
}

/** Each character as its code point, which has no special meaning. */
function literal(text: string): string {
  return text.replaceAll(/./gsu, (letter) => `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`);
}
