/** Why a file could not be used. `message` names the path and says what to do; it never quotes what the file holds. */
export type FileErrorCode =
  'missing' | 'not-a-file' | 'too-large' | 'denied' | 'escapes-root' | 'not-text' | 'unreadable';

export class FileError extends Error {
  readonly code: FileErrorCode;
  /** Whether reading again later can help without anybody changing the file. */
  readonly temporary: boolean;
  /** The path as it was asked for. */
  readonly where: string;
  constructor(code: FileErrorCode, where: string, message: string, cause?: unknown) {
    super(`${where}: ${message}`, cause === undefined ? undefined : { cause });
    this.name = 'FileError';
    this.code = code;
    this.where = where;
    this.temporary = code === 'unreadable';
  }
}

/**
 * Turns what `node:fs` throws into a FileError.
 * @param where the path as it was asked for
 * @param error what was thrown; a FileError stays as it is
 */
export function fileError(where: string, error: unknown): FileError {
  if (error instanceof FileError) return error;
  const errno = errnoOf(error);
  if (errno === 'ENOENT' || errno === 'ENOTDIR') {
    return new FileError('missing', where, 'there is no such file', error);
  }
  if (errno === 'EACCES' || errno === 'EPERM') {
    return new FileError('denied', where, 'may not be read; check its owner and mode', error);
  }
  if (errno === 'ENXIO' || errno === 'EISDIR' || errno === 'ENODEV') {
    return new FileError('not-a-file', where, 'is not a regular file', error);
  }
  if (errno === 'ELOOP') {
    return new FileError('unreadable', where, 'goes through too many symbolic links', error);
  }
  return new FileError('unreadable', where, `cannot be read (${errno ?? 'unknown error'})`, error);
}

/** The system's name of an error, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}
