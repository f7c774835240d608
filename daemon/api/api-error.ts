/** What the API answers instead of facts: `{"error": {"code", "message"}}` with an HTTP status. */
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
  /** The part of the request at fault, such as `images.3.pullPolicy`; empty for the request as a whole. */
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

/** The error to show for whatever was thrown: what nobody foresaw is told without its details, which may hold secrets. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof BodyError) {
    return new ApiError(error.code === 'aborted' ? 'bad-request' : error.code, error.message);
  }
  return new ApiError('internal', 'the agent failed to answer; its log says why');
}

/** Writes an error as the answer. */
export function writeError(ctx: Context, error: ApiError): void {
  ctx.status = error.status;
  ctx.body = { error: { code: error.code, message: error.message } };
  if (error.code === 'overloaded') ctx.set('retry-after', '1');
  // Whoever is refused has nothing more to say on this connection.
  if (error.code === 'forbidden') ctx.set('connection', 'close');
}
