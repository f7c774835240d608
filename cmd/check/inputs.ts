/** The texts to check: files, standard input, and the manifests in directories. */
import type { Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FileError, fileError, listDirectory } from '../../src/files/read.ts';
import { readText, type NamedText } from '../objects/documents.ts';
import { UsageError } from '../program/exit.ts';

export interface Input extends NamedText {
  /** Found in a directory, where other files than manifests are usual. */
  readonly isFromDirectory: boolean;
}

/** No repository of manifests has so many files; a directory such as `/` does. */
const maxFiles = 10_000;
const maxDepth = 32;
const manifest = /\.(?:ya?ml|json)$/;
const kustomizations = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'];

/** Reads one file after the other. @param note gets what is not read, and why @throws UsageError */
export async function* readInputs(
  paths: readonly string[],
  stdin: NodeJS.ReadableStream,
  note: (message: string) => void,
): AsyncGenerator<Input> {
  for (const path of paths) {
    const isDirectory = path !== '-' && (await statOf(path, stat)).isDirectory();
    if (!isDirectory) yield { ...(await readText(path, stdin)), isFromDirectory: false };
    else
      for (const file of await filesBelow(path, note))
        yield { ...(await readText(file, stdin)), isFromDirectory: true };
  }
}

async function filesBelow(top: string, note: (message: string) => void): Promise<readonly string[]> {
  const found: string[] = [];
  async function search(directory: string, depth: number): Promise<void> {
    const names = await namesIn(directory);
    if (names.includes('Chart.yaml') && names.includes('templates')) {
      note(`${directory} is not read: it is a chart; helm template ${directory} | archwright check -`);
      return;
    }
    if (kustomizations.some((name) => names.includes(name))) {
      note(
        `${directory} has a kustomization, which can change images; kustomize build ${directory} | archwright check -`,
      );
    }
    for (const name of names) {
      const path = join(directory, name);
      const stats = await statOf(path);
      // Links to directories could lead in circles. Hidden ones and those of packages hold no manifests.
      const isSearched = stats.isDirectory() && !name.startsWith('.') && name !== 'node_modules';
      if (isSearched && depth < maxDepth) await search(path, depth + 1);
      else if (manifest.test(name) && (stats.isFile() || stats.isSymbolicLink())) found.push(path);
      if (found.length > maxFiles) throw new UsageError(`${top}: holds more than ${maxFiles} manifests`);
    }
  }
  await search(top, 0);
  return found;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await listDirectory(directory, { maxEntries: maxFiles });
  } catch (error) {
    throw error instanceof FileError ? new UsageError(error.message) : error;
  }
}

/** @param read `stat` for a path that a person names, which may be a link to a directory */
async function statOf(path: string, read: (path: string) => Promise<Stats> = lstat): Promise<Stats> {
  try {
    return await read(path);
  } catch (error) {
    throw new UsageError(fileError(path, error).message);
  }
}
