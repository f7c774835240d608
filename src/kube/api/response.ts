/** Responses of the API server as text, each with a limit in bytes, and failed exchanges as KubeErrors. */
import { readBody } from '../../http/body.ts';
import type { OpenResponse } from '../../http/exchange.ts';
import { messageWithCause, TransportError } from '../../http/transport-error.ts';
import { KubeError, type KubeErrorCode } from './errors.ts';

/**
 * The whole body as text.
 * @throws KubeError
 */
export async function readText(response: OpenResponse, maxBytes: number, where: string): Promise<string> {
  try {
    return (await readBody(response, maxBytes)).toString('utf8');
  } catch (cause) {
    throw connectionError(cause, where);
  }
}

/** Maps a failed exchange. @param where method and path */
export function connectionError(cause: unknown, where: string): KubeError {
  if (cause instanceof KubeError) return cause;
  if (!(cause instanceof TransportError)) {
    return new KubeError('unavailable', where, `${where}: ${textOf(cause)}`, { cause });
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

/** An error in words. */
export function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
