/**
 * `hosts.toml`: the hosts of one registry namespace in order, with `server` last (containerd
 * `core/remotes/docker/config/hosts.go`, docs/hosts.md). One error makes the whole file invalid.
 */
import { isAbsolute, join } from 'node:path';
import type { TlsSettings } from '../../../src/http/tls/trust.ts';
import { isText } from '../../../src/names/values.ts';
import { secret, type Secret } from '../../../src/telemetry/secret.ts';
import { cleanPath, parseGoDuration, parseGoUrl } from '../../go.ts';
import {
  fieldsOf,
  invalid,
  type InvalidConfig,
  isTexts,
  parseTomlDocument,
  tablesOf,
  type Table,
} from '../../toml.ts';
import type { TomlDocument } from '../../../src/policy/configuration/toml.ts';
import type { ContainerdRules } from '../config/rules.ts';
import { isTable } from '../../../src/policy/value-kinds/plain.ts';

/** The order is containerd's. */
const capabilityNames = ['pull', 'resolve', 'push', 'referrers'] as const;
export type Capability = (typeof capabilityNames)[number];

/** The capabilities that a version has; the default of a host. */
export function capabilitiesOf({ referrers }: ContainerdRules): Capability[] {
  return capabilityNames.filter((name) => name !== 'referrers' || referrers);
}

export interface Header {
  readonly name: string;
  readonly value: Secret;
}

/** One host as configured. An empty `host` stands for the default host of the namespace. */
export interface HostConfig {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly capabilities: readonly Capability[];
  /** Paths. An empty list is a TLS setting, undefined is not. */
  readonly ca?: readonly string[] | undefined;
  /** Paths of certificate and key; an empty path: the key is in the file of the certificate. */
  readonly client?: readonly (readonly [certificate: string, key: string])[] | undefined;
  /** The content of `ca` and `client`, once it is read. */
  readonly certificates?: Pick<TlsSettings, 'ca' | 'client'>;
  readonly skipVerify?: boolean | undefined;
  readonly headers: readonly Header[];
  readonly dialTimeoutMs?: number | undefined;
}

export const noHost: HostConfig = { scheme: '', host: '', path: '', capabilities: [], headers: [] };

/** Registries have a few mirrors. */
const maxHosts = 100;

/** @param dir of the file, for relative paths @returns the hosts, `server` last @throws InvalidConfig */
export function parseHostsFile(dir: string, text: string, rules: ContainerdRules): HostConfig[] {
  const document = parseTomlDocument(text);
  const root = document.value;
  const rootFields = fieldsOf(root, '');
  const server = rootFields.text('server') ?? '';
  const configured = rootFields.table('host');
  const order = hostOrder(document, rules);
  if (order.length > maxHosts) throw invalid(`it has more than ${maxHosts} hosts`);
  checkTypes(root, '', rules);
  const tables = tablesOf(configured, 'host', (table, where) => checkTypes(table, where, rules));
  const hosts = order.map((name) => parseHost(name, dir, tables.get(name) ?? {}, rules));
  return [...hosts, parseHost(server, dir, root, rules)];
}

function hostOrder({ value: root, headers }: TomlDocument, rules: ContainerdRules): string[] {
  if (!rules.hostsByHeader) {
    const hosts = root['host'];
    if (!isTable(hosts) && !rules.hostsOptional) throw invalid('invalid `host` tree');
    return isTable(hosts) ? Object.keys(hosts) : [];
  }
  // Upstream compares with the previous host, which is empty at first.
  const order: string[] = [];
  for (const [first, name] of headers) {
    if (first === 'host' && name !== undefined && name !== (order.at(-1) ?? '')) order.push(name);
  }
  return order;
}

/** Go checks the types of these fields, also in unused tables. */
function checkTypes(table: Table, where: string, rules: ContainerdRules): Table {
  const fields = fieldsOf(table, where);
  fields.texts('capabilities');
  fields.flag('skip_verify');
  fields.flag('override_path');
  fields.table('header');
  if (rules.dialTimeout) fields.text('dial_timeout');
  return table;
}

function parseHost(url: string, dir: string, table: Table, rules: ContainerdRules): HostConfig {
  const fields = fieldsOf(table, '');
  const skipVerify = fields.flag('skip_verify');
  const capabilities = parseCapabilities(fields.texts('capabilities') ?? [], rules);
  const location = parseLocation(url, fields.flag('override_path') === true);
  const files = fields.any('ca');
  const ca = files === undefined ? undefined : textsOf(files, 'ca').map((name) => absolute(name, dir));
  const client = parseClient(fields.any('client'), dir);
  const headers = Object.entries(fields.table('header') ?? {}).flatMap(([name, value]) =>
    textsOf(value, `the header ${JSON.stringify(name)}`).map((item) => ({ name, value: secret(item) })),
  );
  const timeout = rules.dialTimeout ? (fields.text('dial_timeout') ?? '') : '';
  const dialTimeoutMs = timeout === '' ? undefined : parseGoDuration(timeout);
  if (timeout !== '' && dialTimeoutMs === undefined)
    throw invalid('dial_timeout must be a duration such as 10s');
  return { ...location, capabilities, ca, client, skipVerify, headers, dialTimeoutMs };
}

function parseLocation(written: string, overridePath: boolean): Pick<HostConfig, 'scheme' | 'host' | 'path'> {
  if (written === '') return { scheme: '', host: '', path: '' };
  const text = written.startsWith('http') ? written : `https://${written}`;
  const url = parseGoUrl(text);
  if (!url) throw invalid(`${text.replace(/\/\/.*@/s, '//')} is not a URL`);
  const { scheme, host } = url;
  if (url.path === '') return { scheme, host, path: overridePath ? '' : '/v2' };
  const path = cleanPath(url.path);
  return { scheme, host, path: path.endsWith('/v2') || overridePath ? path : `${path}/v2` };
}

function parseCapabilities(written: readonly string[], rules: ContainerdRules): Capability[] {
  const known = capabilitiesOf(rules);
  if (written.length === 0) return known;
  const wanted = new Set(
    written.map((word) => {
      const found = known.find((name) => name === word.toLowerCase());
      if (found === undefined) throw invalid(`unknown capability ${word}`);
      return found;
    }),
  );
  return known.filter((name) => wanted.has(name));
}

function textsOf(value: unknown, what: string): readonly string[] {
  if (isText(value)) return [value];
  if (isTexts(value)) return value;
  throw invalid(`${what} must be a string or a list of strings`);
}

/** A string, a list of strings (files with both certificate and key) or a list of pairs. */
function parseClient(value: unknown, dir: string): [string, string][] | undefined {
  if (value === undefined) return undefined;
  if (isText(value)) return [[absolute(value, dir), '']];
  if (!Array.isArray(value)) throw wrongClient();
  const pairs = value.map((item: unknown): [string, string] => {
    if (isText(item)) return [absolute(item, dir), ''];
    if (!isTexts(item)) throw wrongClient();
    const [certificate, key, ...more] = item;
    if (certificate === undefined || key === undefined || more.length > 0) throw wrongClient();
    return [absolute(certificate, dir), absolute(key, dir)];
  });
  return pairs.length === 0 ? undefined : pairs;
}

function wrongClient(): InvalidConfig {
  return invalid('client must be a file, or a list of files and pairs of certificate and key');
}

/** Go's `filepath.Join`: an empty name is the directory, which fails later, or stays empty without one. */
function absolute(name: string, dir: string): string {
  if (isAbsolute(name)) return name;
  return dir === '' && name === '' ? '' : join(dir, name);
}
