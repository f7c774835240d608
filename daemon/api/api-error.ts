/** Errors of the API: `{"error": {"code", "message"}}` with an HTTP status. */
import type { Context } from 'koa';
import { BodyError } from '../../src/serving/body.ts';
import type { RequestOutcome } from './metrics.ts';

/** The HTTP status and the outcome in metrics by code. */
const codes = {
  'bad-request': { status: 400, outcome: 'wrong' },
  forbidden: { status: 403, outcome: 'refused' },
  'not-found': { status: 404, outcome: 'wrong' },
  'method-not-allowed': { status: 405, outcome: 'wrong' },
  timeout: { status: 408, outcome: 'wrong' },
  'too-large': { status: 413, outcome: 'wrong' },
  'unsupported-media-type': { status: 415, outcome: 'wrong' },
  internal: { status: 500, outcome: 'failed' },
  overloaded: { status: 503, outcome: 'overloaded' },
} as const;

export type ApiErrorCode = keyof typeof codes;

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ApiErrorCode;
  readonly status: number;
  readonly outcome: RequestOutcome;
  constructor(code: ApiErrorCode, message: string) {
    super(message);
    this.code = code;
    this.status = codes[code].status;
    this.outcome = codes[code].outcome;
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

export function writeError(ctx: Context, { code, status, message }: ApiError): void {
  ctx.status = status;
  ctx.body = { error: { code, message } };
  if (code === 'overloaded') ctx.set('retry-after', '1');
  // A refused client cannot do anything else on this connection.
  if (code === 'forbidden') ctx.set('connection', 'close');
}
