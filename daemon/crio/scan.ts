/**
 * All files of CRI-O that lookups read, at once: for the fingerprint, problems, directories to watch and
 * descriptions. Lookups read only what they need.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { Problem, SourceProblem } from '../../src/credentials/credential.ts';
import { DockerConfigError } from '../../src/credentials/docker/docker-config.ts';
import { FileError, listDirectory, readBounded } from '../../src/files/read.ts';
import type { SourcePart } from '../../src/files/source-part.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { ConfigFileError, InvalidConfig } from '../toml.ts';
import { parseAuthFile } from './auth-file.ts';
import { authFilesOf } from './auth-files.ts';
import { certificateRoots, certificatesFor } from './certs-d.ts';
import type { CrioNode } from './endpoints.ts';
import { parsePolicy, policyFile } from './policy.ts';
import { registriesDirs } from './load-registries.ts';

/** As for lookups. */
const maxFileBytes = 4 * 1024 * 1024;
/** Nodes have one directory for each configured registry. */
const maxDirectories = 1000;

export interface Scan {
  /** Everything that affects endpoints; secrets only as hashes. */
  readonly content: string;
  readonly problems: readonly Problem[];
  readonly dirs: readonly string[];
  /** Auth files, directories of certificates and policy, as far as they exist. */
  readonly parts: readonly SourcePart[];
}

export async function scanFiles(node: CrioNode, root: string): Promise<Scan> {
  const { conf, registries, shortNameMode } = node;
  const problems: Problem[] = [];
  const parts: SourcePart[] = [];
  const found: unknown[] = [];
  const policy = await policyFile(conf, root);
  const files = [
    ...authFilesOf(conf).map(({ path, format }) => ({
      path,
      what: 'credentials of registries and mirrors',
      check: (bytes: Buffer) => void parseAuthFile(bytes, format),
    })),
    { path: policy, what: 'which images may be pulled', check: (bytes: Buffer) => void parsePolicy(bytes) },
  ];
  for (const { path, what, check } of files) {
    try {
      const bytes = await readBounded(path, { maxBytes: maxFileBytes, root });
      found.push([path, hashed(bytes)]);
      check(bytes);
      parts.push({ where: path, state: 'used', what });
    } catch (error) {
      if (error instanceof FileError && error.code === 'missing') continue;
      problems.push({ origin: path, message: `${reasonOf(error)}; pulls that need it fail on this node` });
    }
  }
  const roots = certificateRoots(conf);
  const hosts = new Map<string, string>();
  for (const dir of roots) {
    for (const host of await namesIn(dir, root, problems))
      if (!hosts.has(host)) hosts.set(host, join(dir, host));
  }
  for (const [host, dir] of [...hosts].slice(0, maxDirectories)) {
    try {
      const { ca, client } = await certificatesFor(host, conf, root);
      found.push([host, ca, client.map(({ certificate, key }) => [certificate, hashed(reveal(key))])]);
      parts.push({
        where: dir,
        state: 'used',
        what: `CAs: ${ca.length}, client certificates: ${client.length}`,
      });
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error;
      found.push([host, error.message]);
      problems.push({
        origin: error.where,
        message: `${error.reason}; pulls from ${host} fail on this node`,
      });
    }
  }
  const rules = [shortNameMode, { ...registries, aliases: [...registries.aliases] }];
  const dirs = [
    ...conf.dirs,
    ...registriesDirs(conf),
    ...files.map(({ path }) => dirname(path)),
    ...roots,
    ...hosts.values(),
  ];
  return { content: JSON.stringify([rules, found]), problems, dirs, parts };
}

/** @throws other errors than those of content and files */
function reasonOf(error: unknown): string {
  if (error instanceof FileError) return error.reason;
  if (error instanceof DockerConfigError || error instanceof InvalidConfig) return error.message;
  throw error;
}

function hashed(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url');
}

async function namesIn(dir: string, root: string, problems: Problem[]): Promise<readonly string[]> {
  try {
    return await listDirectory(dir, { maxEntries: maxDirectories, root });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    if (error.code !== 'missing') problems.push({ origin: dir, message: error.message });
    return [];
  }
}

const atStart = 'CRI-O reads it only when it starts; archwright uses a change at once';
const atReload = 'CRI-O reads it again only when it is reloaded; archwright uses a change at once';
const noVersion =
  'its version is unknown; without short_name_mode, short names are tried in every search registry';

/** The parts of CRI-O's configuration, for `archwright inspect --verbose` and `agent --check`. */
export function describeParts(
  { conf, registries, version, shortNameMode }: CrioNode & { readonly version: string | undefined },
  scanned: readonly SourcePart[],
  problems: readonly SourceProblem[],
): SourcePart[] {
  const { registries: entries, search, aliases } = registries;
  const withProblem = new Set(problems.map(({ origin }) => origin));
  const used = (where: string, what: string, differs?: readonly string[]): SourcePart => {
    return { where, state: 'used', what, ...(differs && { differs }) };
  };
  const absent = (where: string): SourcePart => ({ where, state: 'absent', what: 'there is no such file' });
  const searched = search?.registries.join(', ') || 'none';
  const parts = [
    ...(conf.files.length === 0 ? [absent('/etc/crio/crio.conf')] : []),
    ...conf.files.map((file) => used(file, 'settings of CRI-O', [atStart])),
    used('cri-o', version === undefined ? noVersion : `version ${version}`),
    ...(registries.files.length === 0 ? [absent('/etc/containers/registries.conf')] : []),
    ...registries.files.map((file) =>
      used(file, `registries: ${entries.filter((entry) => entry.file === file).length}`, [atReload]),
    ),
    used('short names', `${shortNameMode}, aliases: ${aliases.size}, search registries: ${searched}`),
    ...entries
      .filter(({ blocked, location, prefix }) => blocked && location !== prefix)
      .map(({ prefix, file }) => used(file, `blocked has no effect on ${prefix}, whose location is another`)),
    ...scanned,
  ];
  return [
    ...parts.filter(({ where }) => !withProblem.has(where)),
    ...problems.map(({ origin, message }): SourcePart => ({
      where: origin,
      state: 'left-out',
      what: message,
    })),
  ];
}
