/**
 * Writes the files of a TLS directory (`tls-files.ts`) as the kubelet does: the file names are links into a directory that is replaced as a
 * whole, so a reader finds the old files or the new ones.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadTlsMaterial } from './tls-files.ts';

export const tlsFileNames = ['tls.crt', 'tls.key', 'ca.crt'] as const;
export type TlsFileContents = Readonly<Record<(typeof tlsFileNames)[number], Buffer>>;

/** The kubelet's name for it (pkg/volume/util/atomic_writer.go). */
const link = '..data';

/**
 * Replaces all files of a directory at once; it is created if it is missing.
 * @returns whether they changed
 * @throws ServingError if they cannot be used: the files in use stay
 */
export async function replaceTlsFiles(dir: string, files: TlsFileContents): Promise<boolean> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (await hasFiles(dir, files)) return false;
  const version = `..${randomBytes(8).toString('hex')}`;
  try {
    await mkdir(join(dir, version), { mode: 0o700 });
    for (const name of tlsFileNames) await writeFile(join(dir, version, name), files[name], { mode: 0o600 });
    // Half of a change, or a mistake: the files in use stay.
    await loadTlsMaterial(join(dir, version), true);
    await swapLink(version, join(dir, link));
    for (const name of tlsFileNames) await swapLink(join(link, name), join(dir, name));
  } finally {
    await removeOthers(dir);
  }
  return true;
}

async function hasFiles(dir: string, files: TlsFileContents): Promise<boolean> {
  const found = await Promise.all(
    tlsFileNames.map((name) => readFile(join(dir, name)).catch(() => undefined)),
  );
  return tlsFileNames.every((name, index) => found[index]?.equals(files[name]));
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
