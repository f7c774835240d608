/**
 * The configuration: a value for every setting, from a TOML file, then the environment, then flags. Each
 * overrides the one before. All problems are found at once, with their positions, and contradictions once there
 * is no other. With any problem there is no configuration, but for `clean`: a removal goes on without settings
 * that it does not use.
 */
import { createHash } from 'node:crypto';
import { decodeUtf8, readBounded, FileError } from '../../files/read.ts';
import { inconsistencies } from './consistency.ts';
import { environmentLayer, fileLayer, flagLayer, unreadableLayer, type Layer } from './layer.ts';
import { describePath, type Place, type Problem } from './problem.ts';
import { own } from '../../names/values.ts';
import type { Part, Setting } from '../settings/setting.ts';
import { settings, type Configuration } from '../settings/all.ts';
import { certificateSettings, controllerSettings } from '../settings/controller.ts';
import { placementSettings } from '../settings/placement.ts';

export type { Configuration } from '../settings/all.ts';

/** A thousand times a large configuration. A wrong path to an endless file must not fill the memory. */
export const maxConfigurationBytes = 1_048_576;

export interface ConfigurationSources {
  readonly file?: string | undefined;
  /** For the command line: the placement settings of the cluster's configuration, before `file`. */
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
    return { layer: unreadableLayer({ kind: 'file', where: file, key: '', message }) };
  }
}
