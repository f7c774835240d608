/**
 * The configuration: a value for every setting, from a TOML file, then the environment, then flags. Each
 * overrides the one before. All problems are found at once, with their positions, and contradictions once there
 * is no other. With any problem there is no configuration, but for `clean`: a removal goes on without settings
 * that it does not use.
 */
import { createHash } from 'node:crypto';
import { decodeUtf8, readBounded, FileError } from '../../files/read.ts';
import {
  describePath,
  environmentLayer,
  fileLayer,
  flagLayer,
  type Layer,
  type Place,
  type Problem,
} from './layer.ts';
import { own } from '../../names/values.ts';
import type { Part, Path, Setting } from '../settings/setting.ts';
import { absolutePathRule } from '../settings/images.ts';
import { brokenBy } from '../value-kinds/plain.ts';
import { settings, type Configuration } from '../settings/all.ts';
import { certificateSettings, controllerSettings } from '../settings/controller.ts';
import { placementSettings } from '../settings/placement.ts';

export type { Configuration } from '../settings/all.ts';

/** A thousand times a large configuration. A wrong path to an endless file must not fill the memory. */
export const maxConfigurationBytes = 1_048_576;

export interface ConfigurationSources {
  readonly file?: string | undefined;
  /** The placement settings of the cluster's configuration, for the command line, before `file`. */
  readonly cluster?: { readonly where: string; readonly text: string } | undefined;
  /** Reads it if it is no file, for example standard input; throws FileError. */
  readonly read?: ((maxBytes: number) => Promise<Uint8Array>) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly flags: Readonly<Record<string, string>>;
  /** The part of the program that will run with it. */
  readonly part?: Part | undefined;
}

export type Origins = { readonly [Key in keyof Configuration]: Place };

export type LoadedConfiguration =
  | {
      readonly configuration: Configuration;
      readonly origins: Origins;
      /** Hash of the file (`configurationHash`); `undefined` without a file. */
      readonly hash: string | undefined;
      readonly problems: readonly [];
      /** Problems of settings that `clean` does not use. */
      readonly ignored: readonly Problem[];
    }
  | { readonly configuration?: undefined; readonly problems: readonly Problem[] };

/** Short enough for a table, long enough to tell the files of a cluster apart. */
const hashLength = 12;

/** Equal for equal content of a configuration file: the beginning of its SHA-256 in hexadecimal digits. */
export function configurationHash(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, hashLength);
}

/** Reads and checks every source. Throws for no content of a source. */
export async function loadConfiguration(sources: ConfigurationSources): Promise<LoadedConfiguration> {
  const fromFile = sources.file === undefined ? undefined : await readFileLayer(sources.file, sources.read);
  const layers = [
    ...(sources.cluster === undefined ? [] : [clusterLayer(sources.cluster)]),
    ...(fromFile ? [fromFile.layer] : []),
    environmentLayer(settings, sources.env),
    flagLayer(settings, sources.flags),
  ];
  const written = new Map(layers.flatMap(({ values }) => [...values]));
  const entries = Object.entries(settings).map(([key, setting]) => {
    const given = written.get(key);
    return { key, value: given ? given.value : setting.default, origin: given?.place() ?? defaultPlace };
  });
  // The table of settings and the type of the configuration are made from the same object.
  const configuration = Object.fromEntries(entries.map(({ key, value }) => [key, value])) as Configuration;
  const origins = Object.fromEntries(entries.map(({ key, origin }) => [key, origin])) as Origins;
  const broken = layers.flatMap(({ problems }) => problems);
  const contradictions = inconsistencies(configuration, sources.part).map(({ key, path = [], message }) => ({
    ...(written.get(key)?.place(path) ?? defaultPlace),
    key: describePath([...key.split('.'), ...path]),
    message,
  }));
  // The default stands in for a value that could not be read.
  const found = broken.length > 0 ? broken : contradictions;
  const problems = sources.part === 'clean' ? found.filter(concernsClean) : found;
  if (problems.length > 0) return { problems };
  const ignored = sources.part === 'clean' ? found : [];
  return { configuration, origins, hash: fromFile?.hash, problems: [], ignored };
}

/** Unknown settings do not: another version may know them. Those of `clean` are no lists and tables. */
function concernsClean({ key }: Problem): boolean {
  return key === '' || (own<Setting<unknown>>(settings, key)?.parts.includes('clean') ?? false);
}

export function defaultConfiguration(): Configuration {
  return Object.fromEntries(
    Object.entries(settings).map(([key, setting]) => [key, setting.default]),
  ) as Configuration;
}

const defaultPlace: Place = { kind: 'default', where: '' };

/** How this machine reaches registries and the cluster is its own matter. */
const clusterKeys: ReadonlySet<string> = new Set([
  ...Object.keys(placementSettings),
  ...Object.keys(controllerSettings),
  ...Object.keys(certificateSettings),
  'allowedRegistries',
  'deniedRegistries',
  'allowLoopbackRegistries',
]);

/** Other settings are left out, also those that only another version knows. */
function clusterLayer({ where, text }: NonNullable<ConfigurationSources['cluster']>): Layer {
  const { values, problems } = fileLayer(settings, where, text);
  return {
    values: new Map([...values].filter(([key]) => clusterKeys.has(key))),
    problems: problems.filter(({ key }) => key === '' || clusterKeys.has(key.split(/[.[]/, 1)[0] ?? '')),
  };
}

async function readFileLayer(
  file: string,
  read: NonNullable<ConfigurationSources['read']> = (maxBytes) => readBounded(file, { maxBytes }),
): Promise<{ readonly layer: Layer; readonly hash?: string }> {
  try {
    const bytes = await read(maxConfigurationBytes);
    return { layer: fileLayer(settings, file, decodeUtf8(bytes, file)), hash: configurationHash(bytes) };
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const message = error.message.replace(`${file}: `, '');
    return { layer: { values: new Map(), problems: [{ kind: 'file', where: file, key: '', message }] } };
  }
}

interface Inconsistency {
  readonly key: keyof Configuration;
  readonly message: string;
  readonly path?: Path;
}

/**
 * Finds settings that contradict each other.
 * @param part the part that will run; if absent, only problems of every part are found
 */
export function inconsistencies(configuration: Configuration, part?: Part): Inconsistency[] {
  const { onUnknownImage, fallbackArchitecture, preferredArchitecture, preferredWeights } = configuration;
  const { proxies, agents, requirePullableNodes } = configuration;
  const found = [...notSchedulable(configuration), ...incompletePlugins(configuration)];
  function add(key: keyof Configuration, message: string): void {
    found.push({ key, message });
  }
  if (preferredArchitecture !== undefined && Object.keys(preferredWeights).length > 0)
    add('preferredArchitecture', 'and preferredWeights are both set; set one of them');
  if (onUnknownImage === 'fallback' && fallbackArchitecture === undefined)
    add('onUnknownImage', 'is fallback, so fallbackArchitecture must be set');
  for (const [index, { registry }] of proxies.entries()) {
    if (proxies.findIndex((proxy) => proxy.registry === registry) === index) continue;
    found.push({ key: 'proxies', path: [index], message: `names a second proxy for ${registry}` });
  }
  if (agents.length > 1 && !agents.every((agent) => agent.startsWith('https://')))
    add('agents', 'must be URLs only, or a single endpointslices: location');
  if (part === 'agent') found.push(...relativePlugins(configuration));
  if (part === 'webhook' && requirePullableNodes && agents.length === 0)
    add('requirePullableNodes', 'needs agents, so agents must be set');
  return found;
}

/** A pod that requires an architecture without nodes would stay pending. */
function notSchedulable(configuration: Configuration): Inconsistency[] {
  const { schedulableArchitectures, preferredArchitecture, preferredWeights, fallbackArchitecture } =
    configuration;
  if (schedulableArchitectures.length === 0) return [];
  const known = schedulableArchitectures.join(', ');
  const named: (readonly [key: keyof Configuration, architecture: string | undefined, path: Path])[] = [
    ['preferredArchitecture', preferredArchitecture, []],
    ['fallbackArchitecture', fallbackArchitecture, []],
    ...Object.keys(preferredWeights).map((name) => ['preferredWeights', name, [name]] as const),
  ];
  return named
    .filter(([, name]) => name !== undefined && !schedulableArchitectures.includes(name))
    .map(([key, name, path]) => ({
      key,
      path,
      message: `names ${name}, which is not one of schedulableArchitectures (${known})`,
    }));
}

/** No path, and neither `.` nor `..`. The chart has the same. */
const fileName = /^[\w.-]*[\w-][\w.-]*$/;

/**
 * The kubelet's flag names a file or a directory, and needs the directory of the plugins with it. A relative
 * file is one in `configDir`, as in Noe's values.
 */
function incompletePlugins(configuration: Configuration): Inconsistency[] {
  const { 'kubeletConfig.config': file, 'kubeletConfig.configDir': dir } = configuration;
  const hasPrograms = configuration['kubeletConfig.binDir'] !== undefined;
  const key = file === undefined ? 'kubeletConfig.configDir' : 'kubeletConfig.config';
  if (file?.startsWith('/') && dir !== undefined)
    return [{ key, message: 'is a whole path, and kubeletConfig.configDir is set too; set one of them' }];
  if (file !== undefined && dir !== undefined && !fileName.test(file)) {
    const message = `must be the name of a file in kubeletConfig.configDir, not ${JSON.stringify(file)}`;
    return [{ key, message }];
  }
  const hasConfiguration = (file ?? dir) !== undefined;
  if (hasConfiguration === hasPrograms) return [];
  if (hasConfiguration) return [{ key, message: 'needs kubeletConfig.binDir, the directory of the plugins' }];
  const message = 'needs kubeletConfig.config or kubeletConfig.configDir';
  return [{ key: 'kubeletConfig.binDir', message }];
}

/** A person's paths are relative to the working directory. An agent has none on its node. */
function relativePlugins(configuration: Configuration): Inconsistency[] {
  const keys = ['kubeletConfig.config', 'kubeletConfig.configDir', 'kubeletConfig.binDir'] as const;
  const isInDirectory = configuration['kubeletConfig.configDir'] !== undefined;
  return keys.slice(isInDirectory ? 1 : 0).flatMap((key) => {
    const path = configuration[key];
    const message = path === undefined ? undefined : brokenBy(absolutePathRule, path);
    return message === undefined ? [] : [{ key, message }];
  });
}
