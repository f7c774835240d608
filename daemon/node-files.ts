/**
 * The node's files, read below the host root for one of its programs: what is wrong with a file names it. The
 * directories of all files that were looked for are kept, to watch them.
 */
import type { Stats } from 'node:fs';
import { dirname } from 'node:path';
import { ifError } from '../src/async/if-error.ts';
import {
  decodeUtf8,
  listDirectory,
  readBounded,
  statPath,
  undefinedIf,
  type FileErrorCode,
} from '../src/files/read.ts';
import { ConfigFileError, inFile } from './toml.ts';

/** Errors that are no problem: the result is `undefined`, or no name. */
type Skipped = readonly FileErrorCode[];

export class NodeFiles {
  readonly root: string;
  readonly dirs = new Set<string>();

  /** @param root directory that stands for `/` */
  constructor(root: string) {
    this.root = root;
  }

  /** @throws ConfigFileError */
  async read(path: string, maxBytes: number, ...skipped: Skipped): Promise<Buffer | undefined> {
    this.dirs.add(dirname(path));
    const read = () => readBounded(path, { maxBytes, root: this.root }).catch(undefinedIf(...skipped));
    return await inFile(path, read);
  }

  /** The content must be UTF-8. @throws ConfigFileError */
  async text(path: string, maxBytes: number, ...skipped: Skipped): Promise<string | undefined> {
    const bytes = await this.read(path, maxBytes, ...skipped);
    return bytes && (await inFile(path, () => decodeUtf8(bytes, path)));
  }

  /** Names in a directory, sorted; none if it is missing. @throws ConfigFileError */
  async names(dir: string, maxEntries: number, ...skipped: Skipped): Promise<readonly string[]> {
    this.dirs.add(dir);
    const listed = () => listDirectory(dir, { maxEntries, root: this.root });
    return (await inFile(dir, () => listed().catch(undefinedIf('missing', ...skipped)))) ?? [];
  }

  /** Links followed; `undefined` if it is missing. @throws ConfigFileError */
  async stat(path: string, ...skipped: Skipped): Promise<Stats | undefined> {
    this.dirs.add(dirname(path));
    return await inFile(path, () => statPath(path, this.root).catch(undefinedIf(...skipped)));
  }
}

/** What is read, or why what needs it fails. */
export async function orBroken<T>(where: string, read: () => T | Promise<T>): Promise<T | ConfigFileError> {
  return await inFile(where, read).catch(ifError(ConfigFileError, (error) => error));
}
