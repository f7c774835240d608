/**
 * registries.conf, the main file and its drop-ins: search registries and aliases for short names, and per prefix of
 * a repository the location and the mirrors (go.podman.io/image pkg/sysregistriesv2/system_registries_v2.go,
 * shortnames.go; containers-registries.conf(5)).
 */
import { join } from 'node:path';
import {
  InvalidReference,
  parseStrictReference,
  parseNormalized,
} from '../../src/images/references/reference.ts';
import { isText } from '../../src/names/values.ts';
import { orBroken, type NodeFiles } from '../node-files.ts';
import { ConfigFileError, fieldsOf, inFile, invalid, parseTable } from '../toml.ts';
import type { CrioConf } from './crio-conf.ts';

const mirrorUses = ['all', 'digest-only', 'tag-only'] as const;

export interface Mirror {
  /** `host[:port][/path]`. */
  readonly location: string;
  /** https without verification, and http. */
  readonly insecure: boolean;
  readonly use: (typeof mirrorUses)[number];
}

/** A `[[registry]]` table. */
export interface RegistryEntry {
  /** `host[:port][/path]`, or `*.domain`. */
  readonly prefix: string;
  /** Replaces the prefix. Empty only for a wildcard: nothing is replaced. */
  readonly location: string;
  readonly insecure: boolean;
  readonly blocked: boolean;
  readonly mirrorByDigestOnly: boolean;
  readonly mirrors: readonly Mirror[];
  /** The file that has it. */
  readonly file: string;
}

export interface Alias {
  /** Empty: the name has no alias. */
  readonly repository: string;
  /** The file that has it. */
  readonly file: string;
}

export interface RegistriesConf {
  /** Sorted by prefix. */
  readonly registries: readonly RegistryEntry[];
  readonly search: { readonly registries: readonly string[]; readonly file: string } | undefined;
  /** Keys: short names. */
  readonly aliases: ReadonlyMap<string, Alias>;
  /** Why no short name can be resolved. */
  readonly brokenAliases: ConfigFileError | undefined;
  /** Undefined or empty: the auth files. */
  readonly credentialHelpers: readonly string[] | undefined;
  readonly files: readonly string[];
}

export const noRegistries: RegistriesConf = {
  registries: [],
  search: undefined,
  aliases: new Map(),
  brokenAliases: undefined,
  credentialHelpers: undefined,
  files: [],
};

/** Files with some 140 aliases have 10 KiB. */
const maxFileBytes = 1_048_576;
/** Distributions install two or three drop-ins. */
const maxEntries = 200;
/** podman writes aliases here that it has asked a person for. */
const aliasFile = '/var/cache/containers/short-name-aliases.conf';

/**
 * The main file, then its drop-ins (`tryUpdatingCache`, `updateWithConfigurationFrom`).
 * @throws ConfigFileError if CRI-O would not start, or not take over the change
 */
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
  const paths = [main];
  for (const dir of dirs) {
    const names = await files.names(dir, maxEntries);
    paths.push(...names.filter((name) => name.endsWith('.conf')).map((name) => join(dir, name)));
  }
  const found: RegistriesConf[] = [];
  for (const path of paths) {
    const mainSkips = registriesConf === '' ? (['missing'] as const) : [];
    const skipped = path === main ? mainSkips : (['missing', 'not-a-file'] as const);
    const text = await files.text(path, maxFileBytes, ...skipped);
    if (text !== undefined)
      found.push(await inFile(path, () => parseRegistriesConf(text, path, path !== main)));
  }
  // CRI-O reads this file for each short name.
  const aliases = await orBroken(aliasFile, async () => {
    const text = (await files.text(aliasFile, maxFileBytes, 'missing')) ?? '';
    return aliasesIn(fieldsOf(parseTable(text), ''), aliasFile);
  });
  const noted = aliases instanceof ConfigFileError ? { brokenAliases: aliases } : { aliases };
  return [...found, { ...noRegistries, ...noted }].reduce(merge, noRegistries);
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

/** Registries have a few mirrors. */
const maxListed = 100;

type Fields = ReturnType<typeof fieldsOf>;

/** @param file for messages @param isDropIn version 1 is for the main file only @throws InvalidConfig */
export function parseRegistriesConf(text: string, file = '', isDropIn = false): RegistriesConf {
  const fields = fieldsOf(parseTable(text), '');
  const old = version1(fields, file);
  if (old) {
    const newKeys = ['unqualified-search-registries', 'credential-helpers', 'registry', 'aliases'];
    const hasNew = newKeys.some((key) => fields.any(key) !== undefined) || fields.text('short-name-mode');
    if (hasNew) throw invalid('it mixes keys of version 1 and 2');
    if (isDropIn) throw invalid('a drop-in cannot be of version 1');
    return { ...noRegistries, ...old, files: [file] };
  }
  const tables = fields.tables('registry');
  const registries = tables.map((table, index) => entryOf(fieldsOf(table, `registry ${index + 1}: `), file));
  refuseConflicts(registries);
  const search = fields.texts('unqualified-search-registries');
  // CRI-O uses a mode of its own, and refuses an unknown one here.
  const mode = fields.text('short-name-mode') ?? '';
  if (!['', 'disabled', 'permissive', 'enforcing'].includes(mode))
    throw invalid(`short-name-mode ${quoted(mode)} is not known`);
  return {
    ...noRegistries,
    // The first of a prefix counts.
    registries: [...new Map(registries.toReversed().map((entry) => [entry.prefix, entry])).values()],
    search: search && { registries: search.map(searchRegistry), file },
    aliases: aliasesIn(fields, file),
    credentialHelpers: fields.texts('credential-helpers'),
    files: [file],
  };
}

/** `[registries.search]`, `insecure` and `block`. */
function version1(fields: Fields, file: string): Pick<RegistriesConf, 'registries' | 'search'> | undefined {
  const lists = fieldsOf(fields.table('registries') ?? {}, 'registries.');
  const listed = (name: string) =>
    fieldsOf(lists.table(name) ?? {}, `registries.${name}.`)
      .texts('registries')
      ?.map(locationOf);
  const [search, insecure, blocked] = [listed('search'), listed('insecure'), listed('block')];
  if (!search && !insecure && !blocked) return undefined;
  const registries = [...new Set([...(insecure ?? []), ...(blocked ?? [])])].map((location) => {
    const flags = {
      insecure: insecure?.includes(location) === true,
      blocked: blocked?.includes(location) === true,
    };
    return entryOf(fieldsOf({ location, ...flags }, ''), file);
  });
  return { registries, search: search && { registries: search.map(searchRegistry), file } };
}

function entryOf(fields: Fields, file: string): RegistryEntry {
  const location = locationOf(fields.text('location') ?? '');
  const prefix = locationOf(fields.text('prefix') ?? '') || location;
  if (prefix === '') throw invalid('a registry has neither a prefix nor a location');
  const isWildcard = prefix.startsWith('*.');
  if (location === '' && !isWildcard) throw invalid(`the registry ${quoted(prefix)} has no location`);
  if (isWildcard && /[/@:]/.test(prefix))
    throw invalid(`the prefix ${quoted(prefix)} must have the form *.example.com`);
  if (fields.text('pull-from-mirror'))
    throw invalid(`pull-from-mirror is for mirrors, not for the registry ${quoted(prefix)}`);
  const mirrorByDigestOnly = fields.flag('mirror-by-digest-only') === true;
  const tables = fields.tables('mirror');
  if (tables.length > maxListed) throw invalid(`${prefix}: it has more than ${maxListed} mirrors`);
  const mirrors = tables.map((table) => mirrorOf(fieldsOf(table, `${prefix}: mirror: `), mirrorByDigestOnly));
  return {
    prefix,
    location,
    insecure: fields.flag('insecure') === true,
    blocked: fields.flag('blocked') === true,
    mirrorByDigestOnly,
    mirrors,
    file,
  };
}

function mirrorOf(fields: Fields, byDigestOnly: boolean): Mirror {
  const location = locationOf(fields.text('location') ?? '');
  if (location === '') throw invalid('a mirror has no location');
  const written = fields.text('pull-from-mirror') || undefined;
  const use = written === undefined ? 'all' : mirrorUses.find((known) => known === written);
  if (!use) throw invalid(`pull-from-mirror of ${quoted(location)} must be all, digest-only or tag-only`);
  if (byDigestOnly && written !== undefined)
    throw invalid(`${quoted(location)}: mirror-by-digest-only and pull-from-mirror exclude each other`);
  return { location, insecure: fields.flag('insecure') === true, use };
}

function refuseConflicts(registries: readonly RegistryEntry[]): void {
  const placed = Map.groupBy(registries, ({ location, prefix }) => location || prefix);
  for (const [place, entries] of placed) {
    for (const setting of ['insecure', 'blocked'] as const) {
      if (new Set(entries.map((entry) => entry[setting])).size > 1)
        throw invalid(`${quoted(place)} is defined several times with conflicting ${setting}`);
    }
  }
}

/** Cuts slashes at the end. @throws InvalidConfig for a URL */
export function locationOf(text: string): string {
  if (/^https?:\/\//.test(text)) throw invalid(`${quoted(text)} must have no scheme`);
  return text.replace(/\/+$/, '');
}

const domain = /^[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*(?:\.[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*)*(?::[0-9]+)?$/;

function searchRegistry(text: string): string {
  const registry = locationOf(text);
  if (domain.test(registry)) return registry;
  throw invalid(`${quoted(registry)} in unqualified-search-registries is not a host`);
}

/** Aliases by short name. @throws InvalidConfig: one wrong alias spoils the file */
function aliasesIn(fields: Fields, file: string): ReadonlyMap<string, Alias> {
  const aliases = Object.entries(fields.table('aliases') ?? {});
  return new Map(
    aliases.map(([name, value]) => {
      if (!isText(value)) throw invalid(`aliases.${quoted(name)} must be a string`);
      checkAliasName(name);
      return [name, { repository: value === '' ? '' : aliasValue(value), file }];
    }),
  );
}

/** @throws InvalidConfig */
export function checkAliasName(name: string): void {
  if (namesRegistry(untagged(name))) throw invalid(`the alias ${quoted(name)} names a registry`);
}

/** @returns the repository, normalized @throws InvalidConfig */
export function aliasValue(text: string): string {
  if (!namesRegistry(untagged(text))) throw invalid(`the alias value ${quoted(text)} names no registry`);
  const { domain: registry, path } = valid(() => parseNormalized(text));
  return `${registry}/${path}`;
}

function untagged(text: string) {
  const written = valid(() => parseStrictReference(text));
  if (written.tag !== undefined || written.digest !== undefined)
    throw invalid(`${quoted(text)} in aliases must have no tag and no digest`);
  return written;
}

function namesRegistry({ domain: registry }: { readonly domain: string }): boolean {
  return /[.:]/.test(registry) || registry === 'localhost';
}

function valid<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof InvalidReference) throw invalid(error.message);
    throw error;
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}
