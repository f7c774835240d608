/**
 * The files of registries.conf: the main file, then its drop-ins, merged (go.podman.io/image
 * pkg/sysregistriesv2/system_registries_v2.go `tryUpdatingCache`, `updateWithConfigurationFrom`).
 */
import { join } from 'node:path';
import { ifError } from '../../src/async/if-error.ts';
import { FileError, listDirectory, readText, statPath } from '../../src/files/read.ts';
import { ConfigFileError, configFileError, fieldsOf, parseTable } from '../toml.ts';
import type { CrioConf } from './crio-conf.ts';
import { aliasesIn, noRegistries, parseRegistriesConf, type RegistriesConf } from './registries-conf.ts';

/** Files with some 140 aliases have 10 KiB. */
const maxFileBytes = 1_048_576;
/** Distributions install two or three drop-ins. */
const maxEntries = 200;
/** podman writes aliases here that it has asked a person for. */
const aliasFile = '/var/cache/containers/short-name-aliases.conf';

const systemDir = '/etc/containers';

/** Directories of the files, to watch. */
export function registriesDirs(conf: CrioConf): readonly string[] {
  const own = join(conf.home, '.config/containers');
  return [systemDir, own].flatMap((dir) => [dir, join(dir, 'registries.conf.d')]);
}

/** @throws ConfigFileError if CRI-O would not start, or not take over the change */
export async function loadRegistries(
  { home, registriesConf, registriesConfDir }: CrioConf,
  root: string,
): Promise<RegistriesConf> {
  const ownDir = join(home, '.config/containers');
  const own = join(ownDir, 'registries.conf');
  const hasOwn = registriesConf === '' && (await statPath(own, root).catch(() => undefined)) !== undefined;
  const main = registriesConf || (hasOwn ? own : join(systemDir, 'registries.conf'));
  const usual = hasOwn ? [ownDir] : [systemDir, ownDir];
  const dirs =
    registriesConfDir === '' ? usual.map((dir) => join(dir, 'registries.conf.d')) : [registriesConfDir];
  const first = await load(main, root, parseRegistriesConf);
  if (first === undefined && registriesConf !== '') throw new ConfigFileError(main, 'there is no such file');
  let merged = merge(noRegistries, first ?? noRegistries);
  for (const path of (await Promise.all(dirs.map((dir) => dropInsIn(dir, root)))).flat()) {
    const dropIn = await load(path, root, (text, file) => parseRegistriesConf(text, file, true));
    if (dropIn) merged = merge(merged, dropIn);
  }
  const cached = await load(aliasFile, root, (text) => aliasesIn(fieldsOf(parseTable(text), '')));
  return cached ? { ...merged, aliases: new Map([...merged.aliases, ...cached]) } : merged;
}

async function load<T>(
  path: string,
  root: string,
  parse: (text: string, path: string) => T,
): Promise<T | undefined> {
  try {
    return parse(await readText(path, { maxBytes: maxFileBytes, root }), path);
  } catch (error) {
    if (error instanceof FileError && error.code === 'missing') return undefined;
    throw configFileError(path, error);
  }
}

/** Directories and links to nothing are skipped. */
async function dropInsIn(dir: string, root: string): Promise<readonly string[]> {
  const listed = listDirectory(dir, { maxEntries, root });
  const names = await listed.catch(
    ifError(FileError, (error) => {
      if (error.code === 'missing') return [];
      throw configFileError(dir, error);
    }),
  );
  const paths = names.filter((name) => name.endsWith('.conf')).map((name) => join(dir, name));
  const found = await Promise.all(paths.map((path) => statPath(path, root).catch(() => undefined)));
  return paths.filter((_, index) => found[index]?.isDirectory() === false);
}

/** A later file over an earlier one: entries as a whole by prefix, lists if they are mentioned. */
function merge(into: RegistriesConf, from: RegistriesConf): RegistriesConf {
  const registries = new Map([...into.registries, ...from.registries].map((each) => [each.prefix, each]));
  return {
    registries: [...registries.values()].sort((a, b) => (a.prefix < b.prefix ? -1 : 1)),
    search: from.search ?? into.search,
    aliases: new Map([...into.aliases, ...from.aliases]),
    credentialHelpers: from.credentialHelpers ?? into.credentialHelpers,
    shortNameMode: from.shortNameMode ?? into.shortNameMode,
    files: [...into.files, ...from.files],
  };
}
