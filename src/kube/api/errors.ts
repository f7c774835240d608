/** Errors of requests to the API server, and bodies of its responses as text. */
import { readBeginning, readBody } from '../../http/body.ts';
import type { OpenResponse } from '../../http/exchange.ts';
import { asObject, parseJson } from '../../http/json.ts';
import { messageWithCause, TransportError } from '../../http/transport-error.ts';
import { messageOf } from '../../names/printable.ts';

export type KubeErrorCode =
  | 'not-found'
  | 'unauthorized'
  | 'forbidden'
  | 'conflict'
  | 'invalid'
  | 'gone'
  | 'too-many-requests'
  | 'unavailable'
  | 'timeout'
  | 'too-large'
  | 'bad-answer'
  /** This replica is no longer the leader. A write under way may have succeeded. */
  | 'not-leading';

export class KubeError extends Error {
  readonly code: KubeErrorCode;
  /** Whether a later retry can help. */
  readonly temporary: boolean;
  /** Method and API path; never a query, a header or a body. */
  readonly where: string;
  readonly retryAfterMs?: number;
  /**
   * Whether the server named the refused fields. Otherwise an `invalid` JSON patch did not fit the object,
   * for example because the object has changed.
   */
  readonly namesFields: boolean;
  constructor(
    code: KubeErrorCode,
    where: string,
    message: string,
    options: { retryAfterMs?: number; namesFields?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'KubeError';
    this.code = code;
    this.where = where;
    this.temporary = ['too-many-requests', 'unavailable', 'timeout', 'gone'].includes(code);
    this.namesFields = options.namesFields ?? false;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

const codesByStatus: Readonly<Record<number, KubeErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  408: 'timeout',
  409: 'conflict',
  410: 'gone',
  413: 'too-large',
  422: 'invalid',
  429: 'too-many-requests',
  504: 'timeout',
};

/** Status messages quote names from objects; this is enough to recognize the cause. */
const maxMessage = 512;

/** Makes an error from a response of the API server; Kubernetes sends a `Status` object as body. */
export function errorOfAnswer(status: number, body: string, where: string, retryAfter?: string): KubeError {
  const seconds = retryAfter === undefined || !/^\d{1,6}$/.test(retryAfter) ? undefined : Number(retryAfter);
  // A proxy in front of the API server answers in HTML or plain text: the status is enough.
  const { message, details } = asObject(parseJson(body)) ?? {};
  const text = typeof message === 'string' ? message : '(no Kubernetes status in the answer)';
  const { causes } = asObject(details) ?? {};
  const code = codesByStatus[status] ?? (status >= 500 ? 'unavailable' : 'bad-answer');
  return new KubeError(code, where, `${where}: ${status} ${text}`.slice(0, maxMessage), {
    namesFields: Array.isArray(causes) && causes.length > 0,
    ...(seconds !== undefined && { retryAfterMs: seconds * 1000 }),
  });
}

export function isCode(error: unknown, ...codes: readonly KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && codes.includes(error.code);
}

/** The answer to a request; `undefined` if it fails with one of these codes. @throws every other error */
export async function ignoring<T>(
  codes: KubeErrorCode | readonly KubeErrorCode[],
  request: Promise<T>,
): Promise<T | undefined> {
  return await request.catch(ifCode(codes, () => undefined));
}

/** A handler for `catch`: maps an error with one of these codes by `instead`, and throws every other error again. */
export function ifCode<R>(codes: KubeErrorCode | readonly KubeErrorCode[], instead: (error: KubeError) => R) {
  return (error: unknown): R => {
    if (isCode(error, ...[codes].flat())) return instead(error);
    throw error;
  };
}

/** The whole body as text. @throws KubeError */
export async function readText(response: OpenResponse, maxBytes: number, where: string): Promise<string> {
  try {
    return (await readBody(response, maxBytes)).toString('utf8');
  } catch (cause) {
    throw connectionError(cause, where);
  }
}

/** The beginning of the body as text. @throws KubeError */
export async function readStart(response: OpenResponse, maxBytes: number, where: string): Promise<string> {
  try {
    return (await readBeginning(response, maxBytes)).toString('utf8');
  } catch (cause) {
    throw connectionError(cause, where);
  }
}

/** Maps a failed exchange. @param where method and path */
export function connectionError(cause: unknown, where: string): KubeError {
  if (cause instanceof KubeError) return cause;
  if (!(cause instanceof TransportError)) {
    return new KubeError('unavailable', where, `${where}: ${messageOf(cause)}`, { cause });
  }
  const reason = messageWithCause(cause);
  const code = codeOf(cause);
  const message = code === 'unavailable' ? `${cause.where} cannot be reached: ${reason}` : reason;
  return new KubeError(code, where, `${where}: ${message}`, { cause });
}

function codeOf({ failure }: TransportError): KubeErrorCode {
  if (failure === 'aborted' || failure.endsWith('-timeout')) return 'timeout';
  return failure === 'too-large' ? 'too-large' : 'unavailable';
}
