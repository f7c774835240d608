/**
 * One file of containerd's configuration and its migration to containerd's own version (containerd
 * `cmd/containerd/server/config/config.go`, `plugins/cri/images/plugin.go` configMigration), reduced to the settings for images.
 */
import { InvalidConfig } from '../config-error.ts';
import type { ContainerdRules } from './rules.ts';
import { fieldsOf, isTable, parseTable, type Table } from './toml.ts';

export interface ConfigFile {
  /** 0 if the file has none, which means 1. */
  readonly version: number;
  readonly root: string;
  readonly imports: readonly string[];
  readonly disabledPlugins: readonly string[];
  readonly requiredPlugins: readonly string[];
  /** Tables by plugin id. */
  readonly plugins: Table;
}

/** The CRI plugin up to containerd 1.7, and in files of version 2. Version 1 has its short name. */
export const criPlugin = 'io.containerd.grpc.v1.cri';
/** The part of the CRI plugin for images, since 2.0. */
export const imagesPlugin = 'io.containerd.cri.v1.images';
const shortName = 'cri';

/**
 * Parses a file without migrating it.
 * @throws InvalidConfig
 */
export function parseConfigFile(text: string): ConfigFile {
  const fields = fieldsOf(parseTable(text), '');
  const plugins = fields.table('plugins') ?? {};
  for (const [id, table] of Object.entries(plugins)) {
    if (!isTable(table)) throw new InvalidConfig('type', `plugins.${id} must be a table`);
  }
  return {
    version: Number(fields.integer('version') ?? 0),
    root: fields.text('root') ?? '',
    imports: fields.texts('imports') ?? [],
    disabledPlugins: fields.texts('disabled_plugins') ?? [],
    requiredPlugins: fields.texts('required_plugins') ?? [],
    plugins,
  };
}

/**
 * Migrates a file to a version. The image settings of the old CRI plugin replace those of the new one, key by key (`registry` as a
 * whole). A file of that version stays as it is, whatever plugin ids it uses.
 * @param version containerd's own version of the configuration; 0 changes nothing
 * @throws InvalidConfig for a negative version
 */
export function migrateConfigFile(file: ConfigFile, version: number): ConfigFile {
  if (file.version < 0) throw new InvalidConfig('invalid', '`version` must not be negative');
  if (file.version >= version) return file;
  const named = file.version < 2 ? withFullNames(file) : file;
  return { ...named, version, plugins: withImagesPlugin(named.plugins) };
}

/** A file of version 1 with the full names of its plugins, marked with another version. */
export function renameConfigFile(file: ConfigFile, version: number): ConfigFile {
  return { ...withFullNames(file), version };
}

/** Up to 1.7 nothing is migrated, so the plugin id depends on the version of the merged files. */
export function imagesTableOf(plugins: Table, version: number, rules: ContainerdRules): Table {
  const id = rules.migrates ? imagesPlugin : version < 2 ? shortName : criPlugin;
  const table = plugins[id];
  return isTable(table) ? table : {};
}

function withFullNames(file: ConfigFile): ConfigFile {
  return {
    ...file,
    plugins: Object.fromEntries(Object.entries(file.plugins).map(([id, table]) => [fullName(id), table])),
    disabledPlugins: file.disabledPlugins.map(fullName),
    requiredPlugins: file.requiredPlugins.map(fullName),
  };
}

/** Names without a dot are short names of version 1. */
function fullName(id: string): string {
  if (id.includes('.')) return id;
  return (
    coreNames[id] ??
    (id.endsWith('-service') ? `io.containerd.service.v1.${id}` : `io.containerd.grpc.v1.${id}`)
  );
}

const coreNames: Readonly<Record<string, string>> = Object.assign(
  Object.create(null) as Record<string, string>,
  {
    cri: criPlugin,
    cgroups: 'io.containerd.monitor.v1.cgroups',
    linux: 'io.containerd.runtime.v1.linux',
    scheduler: 'io.containerd.gc.v1.scheduler',
    bolt: 'io.containerd.metadata.v1.bolt',
    task: 'io.containerd.runtime.v2.task',
    opt: 'io.containerd.internal.v1.opt',
    restart: 'io.containerd.internal.v1.restart',
    tracing: 'io.containerd.internal.v1.tracing',
    otlp: 'io.containerd.tracing.processor.v1.otlp',
    aufs: 'io.containerd.snapshotter.v1.aufs',
    btrfs: 'io.containerd.snapshotter.v1.btrfs',
    devmapper: 'io.containerd.snapshotter.v1.devmapper',
    native: 'io.containerd.snapshotter.v1.native',
    overlayfs: 'io.containerd.snapshotter.v1.overlayfs',
    zfs: 'io.containerd.snapshotter.v1.zfs',
    windows: 'io.containerd.snapshotter.v1.windows',
    'windows-lcow': 'io.containerd.snapshotter.v1.windows-lcow',
  },
);

const movedKeys = [
  'registry',
  'image_decryption',
  'max_concurrent_downloads',
  'image_pull_progress_timeout',
  'image_pull_with_sync_fs',
  'stats_collect_period',
];
const movedContainerdKeys = ['snapshotter', 'disable_snapshot_annotations', 'discard_unpacked_layers'];

function withImagesPlugin(plugins: Table): Table {
  const old = plugins[criPlugin];
  if (!isTable(old)) return plugins;
  const present = plugins[imagesPlugin];
  const images: Record<string, unknown> = { ...(isTable(present) ? present : {}), ...pick(old, movedKeys) };
  const inner = old['containerd'];
  // Upstream skips these keys without a table of runtimes.
  if (isTable(inner) && Object.hasOwn(inner, 'runtimes'))
    Object.assign(images, pick(inner, movedContainerdKeys));
  return { ...plugins, [imagesPlugin]: images };
}

function pick(table: Table, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(table, name)).map((name) => [name, table[name]]),
  );
}
