/**
 * Reads files from other parties: configuration, credentials, the node's own files. Such a path is not
 * trusted: it may be a FIFO that blocks, a device, a directory, an endless file, or a link out of the node's
 * root.
 */
import { isUtf8 } from 'node:buffer';
import { constants, type Stats } from 'node:fs';
import { open, opendir, stat, lstat, readlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { compareBytes } from '../names/values.ts';

/** Messages name the path and what to do; they never quote the file's content. */
export type FileErrorCode =
  'missing' | 'not-a-file' | 'too-large' | 'denied' | 'escapes-root' | 'not-text' | 'unreadable';

export class FileError extends Error {
  readonly code: FileErrorCode;
  /** The path as requested. */
  readonly where: string;
  /** The message without the path. */
  readonly reason: string;
  constructor(code: FileErrorCode, where: string, reason: string, cause?: unknown) {
    super(`${where}: ${reason}`, cause === undefined ? undefined : { cause });
    this.name = 'FileError';
    this.code = code;
    this.where = where;
    this.reason = reason;
  }
}

/** The FileError of an error of `node:fs`; a FileError stays. @param where the path as requested */
export function fileError(where: string, error: unknown): FileError {
  if (error instanceof FileError) return error;
  const errno = errnoOf(error) ?? 'unknown error';
  const as = (code: FileErrorCode, reason: string): FileError => new FileError(code, where, reason, error);
  if (['ENOENT', 'ENOTDIR'].includes(errno)) return as('missing', 'there is no such file');
  if (['EACCES', 'EPERM'].includes(errno)) return as('denied', 'may not be read; check its owner and mode');
  if (['ENXIO', 'EISDIR', 'ENODEV'].includes(errno)) return as('not-a-file', 'is not a regular file');
  if (errno === 'ELOOP') return as('unreadable', 'goes through too many symbolic links');
  return as('unreadable', `cannot be read (${errno})`);
}

/** The reason of an error of `node:fs` when a file or directory was written, without its path. */
export function writeProblem(error: unknown): string {
  return fileError('', error).reason.replace('read', 'written');
}

/** The system's code of an error, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}

/** A handler for `catch`: undefined for these errors; throws any other one. */
export function undefinedIf(...codes: readonly FileErrorCode[]): (error: unknown) => undefined {
  return (error) => {
    if (error instanceof FileError && codes.includes(error.code)) return undefined;
    throw error;
  };
}

export const undefinedIfMissing = undefinedIf('missing');

/** Opening does not wait for the writer of a FIFO and does not take over a terminal. */
const openFlags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** A file can vanish for one attempt if its volume is swapped between resolving and opening. */
const maxAttempts = 3;

const chunkBytes = 64 * 1024;

export interface ReadOptions {
  /** Larger files are an error. Bytes are counted, because the size of a file can be wrong or grow. */
  readonly maxBytes: number;
  /** Directory that stands for `/`, such as `/host`. */
  readonly root?: string | undefined;
}

/** Reads a whole regular file. @throws FileError */
export async function readBounded(path: string, options: ReadOptions): Promise<Buffer> {
  return attempts(path, options.root, async (resolved, flags) => {
    const file = await open(resolved, flags);
    try {
      return Buffer.concat(await Array.fromAsync(chunksOf(file, path, options.maxBytes)));
    } finally {
      await file.close();
    }
  });
}

/** The status of a file or directory, links followed; `undefined` if it is missing. @throws FileError */
export async function statPath(path: string, root: string | undefined): Promise<Stats | undefined> {
  return attempts(path, root, (resolved) => stat(resolved)).catch(undefinedIfMissing);
}

/** Names, sorted bytewise. @throws FileError, also above `maxEntries` or for a file */
export async function listDirectory(
  path: string,
  options: { readonly maxEntries: number; readonly root?: string | undefined },
): Promise<readonly string[]> {
  return attempts(path, options.root, async (resolved) => {
    const names: string[] = [];
    for await (const entry of await opendir(resolved)) {
      if (names.length === options.maxEntries) {
        throw new FileError('too-large', path, `holds more than ${options.maxEntries} entries`);
      }
      names.push(entry.name);
    }
    return names.sort(compareBytes);
  });
}

export interface DirectoryOptions extends ReadOptions {
  /** Selects the files to read by their names. Hidden files are never read. */
  readonly wanted: (name: string) => boolean;
  readonly maxEntries: number;
}

/**
 * Reads the wanted files of a directory; `maxBytes` is for each.
 * @returns contents by name, in bytewise order; for a file that cannot be read, the error
 * @throws FileError if the directory itself cannot be read
 */
export async function readDirectory(
  dir: string,
  { wanted, maxEntries, ...options }: DirectoryOptions,
): Promise<ReadonlyMap<string, Buffer | FileError>> {
  const files = new Map<string, Buffer | FileError>();
  for (const name of await listDirectory(dir, { ...options, maxEntries })) {
    if (name.startsWith('.') || !wanted(name)) continue;
    const path = join(dir, name);
    files.set(name, await readBounded(path, options).catch((error: unknown) => fileError(path, error)));
  }
  return files;
}

/** Decodes UTF-8 without its byte order mark; never replaces. @throws FileError `not-text` */
export function decodeUtf8(bytes: Uint8Array, where: string): string {
  if (!isUtf8(bytes)) throw new FileError('not-text', where, 'is not UTF-8 text');
  return new TextDecoder().decode(bytes);
}

/** Reads a whole text file. @throws FileError */
export async function readText(path: string, options: ReadOptions): Promise<string> {
  return decodeUtf8(await readBounded(path, options), path);
}

/** The lines of a text file, without empty ones; only a few are in memory at a time. @throws FileError */
export async function* linesOfFile(
  path: string,
  { maxBytes, maxLineBytes }: { readonly maxBytes: number; readonly maxLineBytes: number },
): AsyncGenerator<string, void> {
  const bounded = (line: Buffer): Buffer => {
    if (line.length <= maxLineBytes) return line;
    throw new FileError('too-large', path, `has a line of more than ${maxLineBytes} bytes`);
  };
  try {
    await using file = await open(path, openFlags);
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of chunksOf(file, path, maxBytes)) {
      rest = Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, start)) {
        if (end > start) yield decodeUtf8(bounded(rest.subarray(start, end)), path);
        start = end + 1;
      }
      rest = bounded(rest.subarray(start));
    }
    if (rest.length > 0) yield decodeUtf8(rest, path);
  } catch (error) {
    throw fileError(path, error);
  }
}

async function attempts<T>(
  path: string,
  root: string | undefined,
  act: (resolved: string, flags: number) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    // What is missing without a link on the way is missing; a registry's directory usually is.
    let mayBeReplaced = root === undefined;
    try {
      if (root === undefined) return await act(path, openFlags);
      const visit = (_: string, stats: Stats) => (mayBeReplaced ||= stats.isSymbolicLink());
      const resolved = await resolveInRoot(root, path, visit);
      mayBeReplaced = true;
      return await act(resolved, openFlags | constants.O_NOFOLLOW);
    } catch (error) {
      const code = errnoOf(error);
      const isReplaced = mayBeReplaced && (code === 'missing' || code === 'ENOENT' || code === 'ELOOP');
      if (!isReplaced || attempt === maxAttempts) throw fileError(path, error);
    }
  }
}

async function* chunksOf(file: FileHandle, path: string, maxBytes: number): AsyncGenerator<Buffer> {
  if (!(await file.stat()).isFile()) throw new FileError('not-a-file', path, 'is not a regular file');
  let total = 0;
  for (;;) {
    const room = Math.min(chunkBytes, maxBytes + 1 - total);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(room), 0, room, null);
    if (bytesRead === 0) return;
    total += bytesRead;
    if (total > maxBytes) {
      throw new FileError('too-large', path, `is larger than ${maxBytes} bytes, the limit for such files`);
    }
    yield buffer.subarray(0, bytesRead);
  }
}

/** The limit of Linux itself (`MAXSYMLINKS` in include/linux/namei.h). */
const maxLinks = 40;

/**
 * Resolves a path of the node in a container that mounts the node's root, for example at `/host`. A symbolic link
 * to `/etc/x` means `/host/etc/x` there; the kernel would follow it to the container's own `/etc/x`. So links are
 * followed here, one path component at a time, and a path that leaves the root is refused.
 * @param root directory that stands for `/`; the root itself is trusted and may be a link
 * @param path inside the root; a relative path starts at the root too
 * @param visit called for every directory, link and file on the way, with its path inside the root and status
 * @returns the path of the file for this process, without symbolic links below the root
 * @throws FileError `missing`; `escapes-root` if `..` leads above the root; `unreadable` for a cycle of links
 */
export async function resolveInRoot(
  root: string,
  path: string,
  visit?: (path: string, stats: Stats) => void,
): Promise<string> {
  const waiting = path.split('/').reverse();
  const start = root.endsWith('/') ? root.slice(0, -1) : root;
  const done: string[] = [];
  let links = 0;
  const fail = (error: unknown): never => {
    throw fileError(path, error);
  };
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (name === '' || name === '.') continue;
    if (name === '..') {
      if (done.length === 0) throw new FileError('escapes-root', path, `leads out of ${root}`);
      done.pop();
      continue;
    }
    const inside = ['', ...done, name].join('/');
    const at = start + inside;
    const stats = await lstat(at).catch(fail);
    visit?.(inside, stats);
    const target = stats.isSymbolicLink() ? await readlink(at).catch(fail) : undefined;
    if (target === undefined) {
      done.push(name);
      continue;
    }
    links += 1;
    if (links > maxLinks) throw new FileError('unreadable', path, 'goes through too many symbolic links');
    if (target.startsWith('/')) done.length = 0;
    waiting.push(...target.split('/').reverse());
  }
  return done.length === 0 ? root : [start, ...done].join('/');
}
