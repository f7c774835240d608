/** Temporary directories for kinds that need files. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Provides an empty directory and removes it afterwards. */
export async function inDirectory<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'archwright-vectors-'));
  try {
    return await use(dir);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Writes a file and its directories. */
export async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}
