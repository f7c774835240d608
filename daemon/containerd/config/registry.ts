/**
 * What this node's containerd pulls with: its version, and the registry settings of the CRI plugin in config.toml
 * with their contradictions, defaults and credentials (containerd `internal/cri/config/config.go`,
 * `plugins/cri/images/plugin.go`).
 */
import { join } from 'node:path';
import { Base64Error, decodeLogin } from '../../../src/credentials/docker/docker-config.ts';
import type { Credential, MatchedCredential, Problem } from '../../../src/credentials/credential.ts';
import { credentialId } from '../../../src/credentials/identity.ts';
import { reveal, secret, type Secret } from '../../../src/telemetry/secret.ts';
import { parseGoUrl } from '../../go.ts';
import type { Header } from '../hosts/hosts-file.ts';
import { firstExisting, type NodeFiles } from '../../node-files.ts';
import type { VersionFinder } from '../../node-programs.ts';
import { fieldsOf, inFile, invalid, InvalidConfig, isTexts, tablesOf, type Table } from '../../toml.ts';
import { imagesTable, isCriDisabled, loadConfig } from './config.ts';
import { programsFor, rulesFor, type ContainerdRules } from './rules.ts';

export interface RegistryTls {
  readonly ca?: string;
  readonly client?: readonly [certificate: string, key: string];
  readonly skipVerify: boolean;
}

/** Credentials of `registry.configs."<host>".auth`, or of the CRI. An empty text means "not set". */
export interface Auth {
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  /** base64 of `username:password`. */
  readonly auth?: Secret | undefined;
  readonly identityToken?: Secret | undefined;
}

export interface Registry {
  readonly configPath: string;
  /** Endpoints by namespace or `*`. */
  readonly mirrors: ReadonlyMap<string, readonly string[]>;
  /** Keys: hosts of requests. */
  readonly configs: ReadonlyMap<string, { readonly auth?: Auth; readonly tls?: RegistryTls }>;
  /** Keys: URLs. `validateRegistry` moves them to `configs`. */
  readonly auths: ReadonlyMap<string, Auth>;
  readonly headers: readonly Header[];
}

export interface NodeConfig {
  readonly configFile: string | undefined;
  readonly files: readonly string[];
  readonly version: string | undefined;
  readonly rules: ContainerdRules;
  readonly registry: Registry;
  /** `configs."<host>".auth`, by the host of the request, in every namespace. */
  readonly credentials: ReadonlyMap<string, MatchedCredential>;
  readonly roots: readonly string[];
  /** containerd's client pulls images, not its transfer service. */
  readonly localPull: boolean;
  /** False if its CRI plugin is disabled: the kubelet does not use it. */
  readonly servesKubelet: boolean;
  readonly problems: readonly Problem[];
}

/**
 * @param candidates paths of config.toml inside the host root; the first that exists counts
 * @throws ConfigFileError if containerd would not start
 */
export async function loadNodeConfig(
  candidates: readonly string[],
  files: NodeFiles,
  findVersion: VersionFinder,
): Promise<NodeConfig> {
  const configFile = await firstExisting(candidates, files);
  const { version, problem } = await findVersion(programsFor(configFile ?? ''));
  const rules = rulesFor(version);
  const problems: Problem[] = problem ? [problem] : [];
  const config = configFile === undefined ? undefined : await loadConfig(configFile, rules, files);
  return await inFile(configFile ?? '', () => {
    const images = config ? imagesTable(config, rules) : {};
    const table = fieldsOf(images, '').table('registry') ?? {};
    const registry = validateRegistry(readRegistry(table, rules));
    const localPull = usesLocalPull(images, rules);
    const roots = searchRoots(effectiveConfigPath(registry, rules), localPull);
    const servesKubelet = config === undefined || !isCriDisabled(config, rules);
    if (!servesKubelet) problems.push({ origin: configFile ?? '', message: criDisabled });
    const credentials = credentialsOf(registry, configFile ?? '', problems);
    const common = { configFile, files: config?.files ?? [], version, rules, problems };
    return { ...common, registry, credentials, roots, localPull, servesKubelet };
  });
}

/** The files of a candidate: itself, or `config.toml` in it if it may be a directory (Noe's values). */
export function filesOfCandidate(path: string): readonly string[] {
  return path.endsWith('.toml') ? [path] : [join(path, 'config.toml'), path];
}

const criDisabled =
  'it disables the CRI plugin, so the kubelet does not use this containerd; set containerdConfigPathCandidates to the configuration of the kubelet’s containerd';

/** @param problems gets those of the others */
function credentialsOf({ configs }: Registry, origin: string, problems: Problem[]) {
  const found = new Map<string, MatchedCredential>();
  for (const [key, { auth = {} }] of configs) {
    try {
      const credential = parseAuth(auth);
      if (credential)
        found.set(key, { credential, source: 'containerd', key, origin, id: credentialId(credential) });
    } catch (error) {
      if (!(error instanceof InvalidConfig)) throw error;
      problems.push({ origin, message: `registry.configs."${key}".auth ignored: ${error.message}` });
    }
  }
  return found;
}

/** `/etc/docker/certs.d` is included for machines that ran Docker before. */
export const defaultConfigPath = '/etc/containerd/certs.d:/etc/docker/certs.d';

/** Reads the table `registry`; throws InvalidConfig `type`. */
export function readRegistry(table: Table, rules: ContainerdRules): Registry {
  const fields = fieldsOf(table, 'registry.');
  return {
    configPath: fields.text('config_path') ?? '',
    mirrors: tablesOf(fields.table('mirrors'), 'registry.mirrors', (mirror, where) => {
      return fieldsOf(mirror, where).texts('endpoint') ?? [];
    }),
    configs: tablesOf(fields.table('configs'), 'registry.configs', (config, where) => {
      const { table: inner } = fieldsOf(config, where);
      const auth = inner('auth');
      const tls = rules.tlsTables ? inner('tls') : undefined;
      return { ...(auth && { auth: readAuth(auth, where) }), ...(tls && { tls: readTlsTable(tls, where) }) };
    }),
    auths: tablesOf(fields.table('auths'), 'registry.auths', readAuth),
    headers: Object.entries(fields.table('headers') ?? {}).flatMap(([name, values]) => {
      if (!isTexts(values)) throw invalid('registry.headers must be lists of strings');
      return values.map((value) => ({ name, value: secret(value) }));
    }),
  };
}

/** Refuses contradictions and moves `auths` to `configs`; throws InvalidConfig. */
export function validateRegistry(registry: Registry): Registry {
  const { configPath, mirrors, configs, auths } = registry;
  if (configPath !== '' && mirrors.size > 0) {
    throw invalid('`mirrors` cannot be set when `config_path` is provided');
  }
  if (configPath !== '' && [...configs.values()].some(({ tls }) => tls)) {
    throw invalid('`configs.tls` cannot be set when `config_path` is provided');
  }
  const merged = new Map(configs);
  for (const [endpoint, auth] of auths) {
    const url = parseGoUrl(endpoint);
    if (!url) throw invalid('failed to parse a registry url from `registry.auths`');
    const host = url.scheme === '' ? endpoint : url.host;
    merged.set(host, { ...merged.get(host), auth });
  }
  return { ...registry, configs: merged };
}

/** `config_path`, or since 2.2 its default if mirrors are not set either. */
export function effectiveConfigPath({ configPath, mirrors }: Registry, rules: ContainerdRules): string {
  return rules.defaultConfigPath && configPath === '' && mirrors.size === 0 ? defaultConfigPath : configPath;
}

/**
 * Whether containerd's client pulls images, not its transfer service: on request, or because of a setting
 * that the service lacks.
 * @param images the table of the CRI plugin that contains `registry`
 * @throws InvalidConfig
 */
export function usesLocalPull(images: Table, rules: ContainerdRules): boolean {
  if (!rules.transferService) return true;
  const fields = fieldsOf(images, '');
  const registry = fieldsOf(fields.table('registry') ?? {}, 'registry.');
  const used = (name: string): boolean => Object.keys(registry.table(name) ?? {}).length > 0;
  const downloads = fields.any('max_concurrent_downloads');
  return (
    fields.flag('use_local_image_pull') === true ||
    fields.flag('disable_snapshot_annotations') === false ||
    fields.flag('discard_unpacked_layers') === true ||
    fields.flag('image_pull_with_sync_fs') === true ||
    ['mirrors', 'configs', 'auths'].some(used) ||
    (downloads !== undefined && Number(downloads) !== 3)
  );
}

/**
 * Directories of hosts. The transfer service does not split `config_path`: it reads one directory with colons
 * in its name (containerd `core/transfer/registry/registry.go`, up to 2.4).
 */
export function searchRoots(configPath: string, local: boolean): string[] {
  if (configPath === '') return [];
  return local ? configPath.split(':') : [configPath];
}

function readAuth(table: Table, where: string): Auth {
  const { text } = fieldsOf(table, where);
  const hidden = (name: string): Secret | undefined => {
    const value = text(name);
    return value === undefined ? undefined : secret(value);
  };
  return {
    username: text('username'),
    password: hidden('password'),
    auth: hidden('auth'),
    identityToken: hidden('identitytoken'),
  };
}

function readTlsTable(table: Table, where: string): RegistryTls {
  const { text, flag } = fieldsOf(table, where);
  const ca = text('ca_file') ?? '';
  const certificate = text('cert_file') ?? '';
  const key = text('key_file') ?? '';
  return {
    ...(ca !== '' && { ca }),
    // One without the other fails each pull, not the start.
    ...((certificate !== '' || key !== '') && { client: [certificate, key] as const }),
    skipVerify: flag('insecure_skip_verify') === true,
  };
}

/**
 * The credential, undefined for anonymous. A user name takes precedence over an identity token
 * (sent as a password without a user name), and that over `auth` (containerd
 * `internal/cri/server/images/image_pull.go` ParseAuth).
 * @throws InvalidConfig
 */
export function parseAuth(auth: Auth): Credential | undefined {
  const { username = '', password, identityToken } = auth;
  if (username !== '') return { username, password: password ?? secret('') };
  if (identityToken && reveal(identityToken) !== '') return { username: '', password: identityToken };
  const encoded = auth.auth ? reveal(auth.auth) : '';
  return encoded === '' ? undefined : decode(encoded);
}

function decode(encoded: string): Credential {
  try {
    const login = decodeLogin(encoded);
    if (!login) throw invalid('auth must be the base64 of username:password');
    return { username: login.username, password: secret(login.password) };
  } catch (error) {
    if (error instanceof Base64Error) throw invalid('auth is not base64 with padding');
    throw error;
  }
}
