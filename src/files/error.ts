/** Why a file cannot be used. Messages name the path and what to do; they never quote the content of the file. */
export type FileErrorCode =
  'missing' | 'not-a-file' | 'too-large' | 'denied' | 'escapes-root' | 'not-text' | 'unreadable';

export class FileError extends Error {
  readonly code: FileErrorCode;
  /** Whether another attempt may succeed although the file does not change. */
  readonly temporary: boolean;
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
    this.temporary = code === 'unreadable';
  }
}

/**
 * The FileError of an error of `node:fs`.
 * @param where the path as requested
 * @param error returned unchanged if it is a FileError
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

/** The system's code of an error, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return undefined;
}
