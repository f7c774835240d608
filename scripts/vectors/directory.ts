/** Temporary directories for kinds that need files. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Gives an empty directory and takes it away again. */
export async function inDirectory<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'archwright-vectors-'));
  try {
    return await use(dir);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Writes a file with the directories that it needs. */
export async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}
