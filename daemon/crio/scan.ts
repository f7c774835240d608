/**
 * All files of CRI-O that lookups read, at once: for the fingerprint, problems, directories to watch and
 * descriptions. Lookups read only what they need.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { ifError } from '../../src/async/if-error.ts';
import type { Problem, SourceProblem } from '../../src/credentials/credential.ts';
import { FileError, listDirectory, readBounded, undefinedIfMissing } from '../../src/files/read.ts';
import { leftOut, part, type SourcePart } from '../../src/files/source-part.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { ConfigFileError, inFile } from '../toml.ts';
import { parseAuthFile } from './auth-file.ts';
import { authFilesOf, maxAuthFileBytes } from './auth-files.ts';
import { certificateRoots, certificatesFor } from './certs-d.ts';
import type { CrioNode } from './endpoints.ts';
import { maxPolicyBytes, parsePolicy, policyFile } from './policy.ts';
import { registriesDirs } from './load-registries.ts';

/** Nodes have one directory for each configured registry. */
const maxDirectories = 1000;

/**
 * @returns `content`: everything that affects endpoints, secrets only as hashes; `dirs` to watch; `parts`: auth
 * files, directories of certificates and policy, as far as they exist
 */
export async function scanFiles(node: CrioNode, root: string) {
  const { conf, registries, shortNameMode } = node;
  const problems: Problem[] = [];
  const parts: SourcePart[] = [];
  const rules = { ...registries, aliases: [...registries.aliases] };
  const content: unknown[] = [shortNameMode, rules];
  /** @param pulls that fail if it cannot be read @param read nothing: it does not exist */
  async function scan(where: string, pulls: string, read: () => Promise<Scanned | undefined>): Promise<void> {
    try {
      const found = await read();
      if (!found) return;
      content.push([where, found.content]);
      parts.push(part(where, 'used', found.what));
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error;
      content.push([where, error.message]);
      problems.push({ origin: error.where, message: `${error.reason}; ${pulls} fail on this node` });
    }
  }
  async function scanFile(
    path: string,
    maxBytes: number,
    what: string,
    check: (bytes: Buffer) => unknown,
  ): Promise<void> {
    const read = async () => {
      const bytes = await readBounded(path, { maxBytes, root }).catch(undefinedIfMissing);
      if (bytes) check(bytes);
      return bytes && { content: hashed(bytes), what };
    };
    await scan(path, 'pulls that need it', () => inFile(path, read));
  }
  const authFiles = authFilesOf(conf);
  for (const { path, format } of authFiles)
    await scanFile(path, maxAuthFileBytes, 'credentials of registries and mirrors', (bytes) =>
      parseAuthFile(bytes, format),
    );
  const policy = await policyFile(conf, root);
  await scanFile(policy, maxPolicyBytes, 'which images may be pulled', parsePolicy);
  const roots = certificateRoots(conf);
  const hosts = new Map<string, string>();
  for (const dir of roots) {
    const names = await listDirectory(dir, { maxEntries: maxDirectories, root }).catch(
      ifError(FileError, ({ code, message }) => {
        if (code !== 'missing') problems.push({ origin: dir, message });
        return [];
      }),
    );
    for (const host of names) if (!hosts.has(host)) hosts.set(host, join(dir, host));
  }
  for (const [host, dir] of [...hosts].slice(0, maxDirectories)) {
    await scan(dir, `pulls from ${host}`, async () => {
      const { ca, client } = await certificatesFor(host, conf, root);
      const pairs = client.map(({ certificate, key }) => [certificate, hashed(reveal(key))]);
      return { content: [ca, pairs], what: `CAs: ${ca.length}, client certificates: ${client.length}` };
    });
  }
  const files = [policy, ...authFiles.map(({ path }) => path)].map((path) => dirname(path));
  const dirs = [...conf.dirs, ...registriesDirs(conf), ...files, ...roots, ...hosts.values()];
  return { content: JSON.stringify(content), problems, dirs, parts };
}

interface Scanned {
  readonly content: unknown;
  readonly what: string;
}

function hashed(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('base64url');
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
  const used = (where: string, what: string, differs?: readonly string[]) =>
    part(where, 'used', what, differs);
  const absent = (where: string) => part(where, 'absent', 'there is no such file');
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
  return [...parts.filter(({ where }) => !withProblem.has(where)), ...leftOut(problems)];
}
