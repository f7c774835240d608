/**
 * Writes the files of a Secret as the kubelet does: the file names are links into a directory that is
 * replaced as a whole, so a reader finds the old files or the new ones.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadTlsMaterial } from './tls-files.ts';

export const tlsFileNames = ['tls.crt', 'tls.key', 'ca.crt'] as const;
export type FileContents = Readonly<Record<string, Buffer>>;
export type TlsFileContents = Readonly<Record<(typeof tlsFileNames)[number], Buffer>>;

/** The kubelet's name for it (pkg/volume/util/atomic_writer.go). */
const link = '..data';

/** Replaces a TLS directory (`tls-files.ts`). @throws ServingError if unusable: the old files stay */
export function replaceTlsFiles(dir: string, files: TlsFileContents): Promise<boolean> {
  return replaceFiles(dir, files, (version) => loadTlsMaterial(version, true));
}

/**
 * Replaces files of a directory at once; it is created if it is missing.
 * @param check rejects if the files in this directory cannot be used: half of a change, or a mistake. Then
 * the files in use stay
 * @returns whether they changed
 */
export async function replaceFiles(
  dir: string,
  files: FileContents,
  check: (dir: string) => Promise<unknown>,
): Promise<boolean> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (await hasFiles(dir, files)) return false;
  const version = `..${randomBytes(8).toString('hex')}`;
  try {
    await mkdir(join(dir, version), { mode: 0o700 });
    for (const [name, content] of Object.entries(files))
      await writeFile(join(dir, version, name), content, { mode: 0o600 });
    await check(join(dir, version));
    await swapLink(version, join(dir, link));
    for (const name of Object.keys(files)) await swapLink(join(link, name), join(dir, name));
  } finally {
    await removeOthers(dir);
  }
  return true;
}

async function hasFiles(dir: string, files: FileContents): Promise<boolean> {
  const same = await Promise.all(
    Object.entries(files).map(async ([name, content]) => {
      const found = await readFile(join(dir, name)).catch(() => undefined);
      return found?.equals(content) ?? false;
    }),
  );
  return same.every(Boolean);
}

/** Creates or replaces a link in one step. */
async function swapLink(target: string, path: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === target) return;
  const temporary = `${path}.new`;
  await rm(temporary, { force: true, recursive: true });
  await symlink(target, temporary);
  await rename(temporary, path);
}

/** Removes unused versions: the previous one, and leftovers of a crash. */
async function removeOthers(dir: string): Promise<void> {
  const current = await readlink(join(dir, link)).catch(() => undefined);
  for (const name of await readdir(dir)) {
    if (/^\.\.[0-9a-f]{16}$/.test(name) && name !== current) {
      await rm(join(dir, name), { recursive: true, force: true });
    }
  }
}
