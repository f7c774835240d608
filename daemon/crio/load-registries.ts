/**
 * The files of registries.conf: the main file, then its drop-ins, merged (go.podman.io/image
 * pkg/sysregistriesv2/system_registries_v2.go `tryUpdatingCache`, `updateWithConfigurationFrom`).
 */
import { join } from 'node:path';
import type { FileErrorCode } from '../../src/files/read.ts';
import { orBroken, type NodeFiles } from '../node-files.ts';
import { ConfigFileError, fieldsOf, inFile, parseTable } from '../toml.ts';
import type { CrioConf } from './crio-conf.ts';
import { aliasesIn, noRegistries, parseRegistriesConf, type RegistriesConf } from './registries-conf.ts';

/** Files with some 140 aliases have 10 KiB. */
const maxFileBytes = 1_048_576;
/** Distributions install two or three drop-ins. */
const maxEntries = 200;
/** podman writes aliases here that it has asked a person for. */
const aliasFile = '/var/cache/containers/short-name-aliases.conf';

/** @throws ConfigFileError if CRI-O would not start, or not take over the change */
export async function loadRegistries(
  { home, registriesConf, registriesConfDir }: CrioConf,
  files: NodeFiles,
): Promise<RegistriesConf> {
  const systemDir = '/etc/containers';
  const ownDir = join(home, '.config/containers');
  const own = join(ownDir, 'registries.conf');
  const hasOwn = registriesConf === '' && (await orBroken(own, () => files.stat(own)));
  const main = registriesConf || join(hasOwn ? ownDir : systemDir, 'registries.conf');
  const usual = hasOwn ? [ownDir] : [systemDir, ownDir];
  const dirs =
    registriesConfDir === '' ? usual.map((dir) => join(dir, 'registries.conf.d')) : [registriesConfDir];
  const load = async (
    path: string,
    parse: (text: string) => RegistriesConf,
    ...skipped: readonly FileErrorCode[]
  ) => {
    const text = await files.text(path, maxFileBytes, ...skipped);
    return text === undefined ? noRegistries : await inFile(path, () => parse(text));
  };
  const mayBeMissing = registriesConf === '' ? (['missing'] as const) : [];
  const found = [await load(main, (text) => parseRegistriesConf(text, main), ...mayBeMissing)];
  for (const dir of dirs) {
    for (const name of await files.names(dir, maxEntries)) {
      const path = join(dir, name);
      const parse = (text: string) => parseRegistriesConf(text, path, true);
      if (name.endsWith('.conf')) found.push(await load(path, parse, 'missing', 'not-a-file'));
    }
  }
  const aliases = (text: string) => ({
    ...noRegistries,
    aliases: aliasesIn(fieldsOf(parseTable(text), ''), aliasFile),
  });
  // CRI-O reads this file for each short name.
  const noted = await orBroken(aliasFile, () => load(aliasFile, aliases, 'missing'));
  found.push(noted instanceof ConfigFileError ? { ...noRegistries, brokenAliases: noted } : noted);
  return found.reduce(merge);
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
