/**
 * Writes TLS files as the kubelet does: the file names are links into a directory that is replaced as a whole, so
 * a reader finds the old files or the new ones.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkTls } from '../../src/serving/tls-files.ts';
import { secret } from '../../src/telemetry/secret.ts';

/** The kubelet's name for it (pkg/volume/util/atomic_writer.go). */
const link = '..data';

/** @throws ServingError for files that cannot be used */
export async function replaceTlsFiles(
  dir: string,
  files: Readonly<Record<'tls.crt' | 'tls.key' | 'ca.crt', string>>,
): Promise<void> {
  const { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca } = files;
  checkTls({ cert, key: secret(key), ca }, (name) => `${name} of the new certificate`);
  const version = `..${randomBytes(8).toString('hex')}`;
  try {
    await mkdir(join(dir, version), { recursive: true, mode: 0o700 });
    for (const [name, content] of Object.entries(files))
      await writeFile(join(dir, version, name), content, { mode: 0o600 });
    await swapLink(version, join(dir, link));
  } catch (error) {
    await rm(join(dir, version), { recursive: true, force: true });
    throw error;
  }
  for (const name of Object.keys(files)) await swapLink(join(link, name), join(dir, name));
  // The previous version, and leftovers of a crash.
  for (const name of await readdir(dir))
    if (/^\.\.[0-9a-f]{16}$/.test(name) && name !== version) await rm(join(dir, name), { recursive: true });
}

/** Creates or replaces a link in one step. */
async function swapLink(target: string, path: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === target) return;
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  await rename(temporary, path);
}
