/**
 * All files of CRI-O that lookups read, at once: for the fingerprint, problems, directories to watch and
 * descriptions. Lookups read only what they need.
 */
import { dirname, join } from 'node:path';
import { ifError } from '../../src/async/if-error.ts';
import type { Problem } from '../../src/credentials/credential.ts';
import { FileError, listDirectory, readBounded, undefinedIfMissing } from '../../src/files/read.ts';
import { part, type SourcePart } from '../../src/files/source-part.ts';
import { plainJson } from '../../src/telemetry/secret.ts';
import type { FoundVersion } from '../program-version.ts';
import { ConfigFileError, inFile } from '../toml.ts';
import { parseAuthFile } from './auth-file.ts';
import { authFilesOf, filesHelper, maxAuthFileBytes } from './auth-files.ts';
import { certificateRoots, certificatesFor } from './certs-d.ts';
import type { CrioNode } from './endpoints.ts';
import { maxPolicyBytes, parsePolicy, policyFile } from './policy.ts';
import { registriesDirs } from './load-registries.ts';

/** Nodes have one directory for each configured registry. */
const maxDirectories = 1000;

/**
 * @returns `content`: everything that affects endpoints, in clear text with secrets: only for hashing; `dirs` to
 * watch; `parts`: auth files, directories of certificates and policy, as far as they exist
 */
export async function scanFiles({ conf, registries, shortNameMode }: CrioNode, root: string) {
  const problems: Problem[] = [];
  const parts: SourcePart[] = [];
  const content: unknown[] = [shortNameMode, registries];
  const { brokenAliases, credentialHelpers: helpers } = registries;
  const report = ({ where, reason }: ConfigFileError, consequence: string) =>
    problems.push({ origin: where, message: `${reason}; ${consequence} on this node` });
  /** @param pulls that fail if it cannot be read @param read nothing: it does not exist */
  async function scan(
    where: string,
    pulls: string,
    read: () => Promise<{ content: unknown; what: string } | undefined>,
  ): Promise<void> {
    try {
      const found = await inFile(where, read);
      if (!found) return;
      content.push([where, found.content]);
      parts.push(part(where, 'used', found.what));
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error;
      content.push([where, error.message]);
      report(error, `${pulls} fail`);
    }
  }
  const scanFile = (path: string, maxBytes: number, what: string, check: (bytes: Buffer) => unknown) =>
    scan(path, 'pulls that need it', async () => {
      const bytes = await readBounded(path, { maxBytes, root }).catch(undefinedIfMissing);
      if (bytes) check(bytes);
      return bytes && { content: bytes.toString('latin1'), what };
    });
  if (brokenAliases) report(brokenAliases, 'short names cannot be pulled');
  // CRI-O reads them only if its helpers include them.
  const authFiles = helpers?.length && !helpers.includes(filesHelper) ? [] : authFilesOf(conf);
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
  for (const [host, dir] of [...hosts].slice(0, maxDirectories))
    await scan(dir, `pulls from ${host}`, async () => {
      const found = await certificatesFor(host, conf, root);
      const { ca, client } = found;
      return { content: found, what: `CAs: ${ca.length}, client certificates: ${client.length}` };
    });
  const files = [policy, ...authFiles.map(({ path }) => path)].map((path) => dirname(path));
  const dirs = [...conf.dirs, ...registriesDirs(conf), ...files, ...roots, ...hosts.values()];
  return { content: plainJson(content), problems, dirs, parts };
}

const atStart = 'CRI-O reads it only when it starts; archwright uses a change at once';
const atReload = 'CRI-O reads it again only when it is reloaded; archwright uses a change at once';

/** crio.conf, registries.conf and what they say, for `archwright inspect --verbose` and `agent --check`. */
export function partsOf(
  { conf, registries, shortNameMode }: CrioNode,
  { version, problem }: FoundVersion,
): readonly SourcePart[] {
  const { registries: entries, search, aliases } = registries;
  const used = (where: string, what: string, differs?: readonly string[]) =>
    part(where, 'used', what, differs);
  const absent = (where: string) => part(where, 'absent', 'there is no such file');
  const searched = search?.registries.join(', ') || 'none';
  const noVersion = problem ? `${problem.origin}: ${problem.message}` : 'its program is not found';
  return [
    ...(conf.files.length === 0 ? [absent('/etc/crio/crio.conf')] : []),
    ...conf.files.map((file) => used(file, 'settings of CRI-O', [atStart])),
    used('cri-o', version === undefined ? `its version is unknown: ${noVersion}` : `version ${version}`),
    ...(registries.files.length === 0 ? [absent('/etc/containers/registries.conf')] : []),
    ...registries.files.map((file) =>
      used(file, `registries: ${entries.filter((entry) => entry.file === file).length}`, [atReload]),
    ),
    used('short names', `${shortNameMode}, aliases: ${aliases.size}, search registries: ${searched}`),
    ...entries
      .filter(({ blocked, location, prefix }) => blocked && location !== prefix)
      .map(({ prefix, file }) => used(file, `blocked has no effect on ${prefix}, whose location is another`)),
  ];
}
