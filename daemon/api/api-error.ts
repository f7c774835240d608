/** Errors of the API: `{"error": {"code", "message"}}` with an HTTP status. */
import type { Context } from 'koa';
import { BodyError } from '../../src/serving/body.ts';

export type ApiErrorCode =
  | 'bad-request'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'timeout'
  | 'too-large'
  | 'unsupported-media-type'
  | 'internal'
  | 'overloaded';

const statuses: Readonly<Record<ApiErrorCode, number>> = {
  'bad-request': 400,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  timeout: 408,
  'too-large': 413,
  'unsupported-media-type': 415,
  internal: 500,
  overloaded: 503,
};

export class ApiError extends Error {
  readonly code: ApiErrorCode;
  readonly status: number;
  readonly temporary: boolean;
  /** The invalid part of the request, such as `images.3.pullPolicy`; empty for the whole request. */
  readonly where: string;
  constructor(code: ApiErrorCode, message: string, where = '') {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.status = statuses[code];
    this.temporary = code === 'timeout' || code === 'overloaded' || code === 'internal';
    this.where = where;
  }
}

/** The error for the client. Details of unexpected errors are omitted, because they may contain secrets. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof BodyError) {
    return new ApiError(error.code === 'aborted' ? 'bad-request' : error.code, error.message);
  }
  return new ApiError('internal', 'the agent failed to answer; its log says why');
}

export function writeError(ctx: Context, error: ApiError): void {
  ctx.status = error.status;
  ctx.body = { error: { code: error.code, message: error.message } };
  if (error.code === 'overloaded') ctx.set('retry-after', '1');
  // A refused client cannot do anything else on this connection.
  if (error.code === 'forbidden') ctx.set('connection', 'close');
}
