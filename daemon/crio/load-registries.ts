/**
 * The files of registries.conf: the main file, then its drop-ins, merged (go.podman.io/image
 * pkg/sysregistriesv2/system_registries_v2.go `tryUpdatingCache`, `updateWithConfigurationFrom`).
 */
import { join } from 'node:path';
import { ifError } from '../../src/async/if-error.ts';
import {
  listDirectory,
  readText,
  statPath,
  undefinedIf,
  undefinedIfMissing,
  type FileErrorCode,
} from '../../src/files/read.ts';
import { ConfigFileError, fieldsOf, inFile, parseTable } from '../toml.ts';
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
  const found = [await load(main, root, parseRegistriesConf)];
  if (registriesConf !== '' && !found[0]) throw new ConfigFileError(main, 'there is no such file');
  for (const path of (await Promise.all(dirs.map((dir) => dropInsIn(dir, root)))).flat())
    found.push(await load(path, root, (text) => parseRegistriesConf(text, path, true), 'not-a-file'));
  const aliases = (text: string) => ({
    ...noRegistries,
    aliases: aliasesIn(fieldsOf(parseTable(text), ''), aliasFile),
  });
  // CRI-O reads this file for each short name.
  const broken = ifError(ConfigFileError, (brokenAliases) => ({ ...noRegistries, brokenAliases }));
  found.push(await load(aliasFile, root, aliases).catch(broken));
  return found.filter((each) => each !== undefined).reduce(merge, noRegistries);
}

async function load(
  path: string,
  root: string,
  parse: (text: string, path: string) => RegistriesConf,
  ...skipped: readonly FileErrorCode[]
): Promise<RegistriesConf | undefined> {
  return await inFile(path, async () => {
    const read = readText(path, { maxBytes: maxFileBytes, root });
    const text = await read.catch(undefinedIf('missing', ...skipped));
    return text === undefined ? undefined : parse(text, path);
  });
}

async function dropInsIn(dir: string, root: string): Promise<readonly string[]> {
  const listed = () => listDirectory(dir, { maxEntries, root }).catch(undefinedIfMissing);
  const names = (await inFile(dir, listed)) ?? [];
  return names.filter((name) => name.endsWith('.conf')).map((name) => join(dir, name));
}

/** A later file over an earlier one: entries as a whole by prefix, lists if they are mentioned. */
function merge(into: RegistriesConf, from: RegistriesConf): RegistriesConf {
  const registries = new Map([...into.registries, ...from.registries].map((each) => [each.prefix, each]));
  return {
    registries: [...registries.values()].sort((a, b) => (a.prefix < b.prefix ? -1 : 1)),
    search: from.search ?? into.search,
    aliases: new Map([...into.aliases, ...from.aliases]),
    brokenAliases: from.brokenAliases ?? into.brokenAliases,
    credentialHelpers: from.credentialHelpers ?? into.credentialHelpers,
    files: [...into.files, ...from.files],
  };
}
