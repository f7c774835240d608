export type ServingErrorCode = 'invalid-address' | 'cannot-listen' | 'tls-files';

/** Why a server cannot start. Messages name what to change. */
export class ServingError extends Error {
  readonly code: ServingErrorCode;
  readonly temporary: boolean;
  /** The address or the file. */
  readonly where: string;
  constructor(code: ServingErrorCode, where: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ServingError';
    this.code = code;
    this.temporary = code !== 'invalid-address';
    this.where = where;
  }
}
