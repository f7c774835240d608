/**
 * The settings of CRI-O that decide about pulls: crio.conf, every file below crio.conf.d, then the variables
 * and flags of the running process, or of its service (cri-o pkg/config/config.go, internal/criocli).
 */
import { posix } from 'node:path';
import type { Problem } from '../../src/credentials/credential.ts';
import { baseEnvironment, nodeProgram, type Environment } from '../kubelet/run/environment.ts';
import type { NodeFiles } from '../node-files.ts';
import { ConfigFileError, fieldsOf, inFile, parseTable } from '../toml.ts';

export type ShortNameMode = 'enforcing' | 'disabled';

export interface CrioConf {
  /** crio.conf and its drop-ins, as far as they exist. */
  readonly files: readonly string[];
  /** Empty: the files that podman and docker use. */
  readonly globalAuthFile: string;
  /** Empty: the usual policy.json. */
  readonly signaturePolicy: string;
  /** Policies by namespace. */
  readonly signaturePolicyDir: string;
  /** `undefined`: no file has the key. */
  readonly shortNameMode: ShortNameMode | undefined;
  /** Paths that replace the usual ones of registries.conf; empty: the usual ones. */
  readonly registriesConf: string;
  readonly registriesConfDir: string;
  /** Variables of the process. */
  readonly environment: Environment;
  /** Home of its user. */
  readonly home: string;
  readonly problems: readonly Problem[];
}

/** CRI-O's own template has 40 KiB, all of it comments. */
const maxFileBytes = 1024 * 1024;
/** Nodes have a handful of drop-ins. */
const maxFiles = 200;
const maxDepth = 8;

/** The result without files. */
export const defaultCrioConf: CrioConf = {
  files: [],
  globalAuthFile: '',
  signaturePolicy: '',
  signaturePolicyDir: '/etc/crio/policies',
  shortNameMode: undefined,
  registriesConf: '',
  registriesConfDir: '',
  environment: baseEnvironment,
  home: '/root',
  problems: [],
};

/** The keys of `[crio.image]`. A flag has the same name with dashes. */
const keys = {
  globalAuthFile: 'global_auth_file',
  signaturePolicy: 'signature_policy',
  signaturePolicyDir: 'signature_policy_dir',
  shortNameMode: 'short_name_mode',
} as const;
type Settings = Partial<Record<keyof typeof keys, string>>;

/** @throws ConfigFileError if CRI-O would not start */
export async function loadCrioConf(files: NodeFiles): Promise<CrioConf> {
  const program = await nodeProgram(files.root, new Set(['crio']), ['crio.service']);
  const { args, variables: environment, problems } = program;
  const given = (flag: string): string | undefined =>
    flagOf(args, flag) ?? environment[`CONTAINER_${flag.replaceAll('-', '_').toUpperCase()}`];
  const named = given('config');
  const main = named ?? '/etc/crio/crio.conf';
  const dropIns = await filesBelow(given('config-dir') ?? '/etc/crio/crio.conf.d', files);
  const read: string[] = [];
  const image: Settings = {};
  for (const file of main === '' ? dropIns : [main, ...dropIns]) {
    const mayBeMissing = file === main && named === undefined;
    const text = await files.text(file, maxFileBytes, ...(mayBeMissing ? (['missing'] as const) : []));
    if (text === undefined) continue;
    Object.assign(image, await inFile(file, () => parseImageTable(text)));
    read.push(file);
  }
  for (const [name, key] of Object.entries(keys) as [keyof Settings, string][]) {
    const value = given(key.replaceAll('_', '-'));
    if (value !== undefined) image[name] = value;
  }
  const shortNameMode = image.shortNameMode || undefined;
  if (shortNameMode !== undefined && shortNameMode !== 'enforcing' && shortNameMode !== 'disabled')
    throw new ConfigFileError(main, 'short_name_mode must be enforcing or disabled');
  return {
    ...defaultCrioConf,
    ...image,
    shortNameMode,
    files: read,
    registriesConf: given('registries-conf') ?? '',
    registriesConfDir: given('registries-conf-dir') ?? '',
    environment,
    home: environment['HOME'] || defaultCrioConf.home,
    problems,
  };
}

const aliases: Readonly<Record<string, string>> = { config: 'c', 'config-dir': 'd' };

/** The last value of a flag: `--flag value`, `--flag=value`, and the same with one dash. */
function flagOf(args: readonly string[], flag: string): string | undefined {
  let found: string | undefined;
  for (const [index, arg] of args.entries()) {
    const [, name, value] = /^--?([^=]+)(?:=(.*))?$/s.exec(arg) ?? [];
    if (name === flag || (name !== undefined && name === aliases[flag])) found = value ?? args[index + 1];
  }
  return found;
}

/** Every file in lexical order, whatever its name, also in directories. */
async function filesBelow(dir: string, files: NodeFiles, depth = 0): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of await files.names(dir, maxFiles)) {
    const path = posix.join(dir, name);
    if ((await files.stat(path))?.isDirectory() !== true) found.push(path);
    else if (depth < maxDepth) found.push(...(await filesBelow(path, files, depth + 1)));
    if (found.length > maxFiles) throw new ConfigFileError(dir, `holds more than ${maxFiles} files`);
  }
  return found;
}

/** The settings in `[crio.image]`; a key that is not there changes nothing. @throws InvalidConfig */
export function parseImageTable(text: string): Settings {
  const crio = fieldsOf(parseTable(text), '').table('crio') ?? {};
  const image = fieldsOf(fieldsOf(crio, 'crio.').table('image') ?? {}, 'crio.image.');
  const found = Object.entries(keys).map(([name, key]) => [name, image.text(key)] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}
