/**
 * Reads a request's body once, into one buffer, with a limit in bytes and a deadline. What it refuses is told by a
 * typed error, so that the caller chooses the answer; the request stays readable enough for that answer to arrive.
 */
import type { IncomingMessage } from 'node:http';

export type BodyErrorCode = 'too-large' | 'aborted' | 'timeout';

/** Why a body could not be read. */
export class BodyError extends Error {
  readonly code: BodyErrorCode;
  readonly temporary: boolean;
  readonly where = 'request body';
  constructor(code: BodyErrorCode, message: string) {
    super(message);
    this.name = 'BodyError';
    this.code = code;
    this.temporary = code !== 'too-large';
  }
}

export interface BodyLimits {
  readonly maxBytes: number;
  /** From the call to the last byte. */
  readonly timeoutMs: number;
}

/**
 * How long a refused body is read and thrown away. Closing at once makes the kernel reset the connection, and a client
 * that is still writing then never sees why it was refused.
 */
const lingerMs = 1000;

/**
 * @param request a request whose body nobody has read
 * @returns the whole body
 * @throws BodyError `too-large` as soon as Content-Length or the bytes pass the limit, `aborted` where the client went
 *   away or sent less than it announced, `timeout` after `timeoutMs`
 */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limits.maxBytes) {
    discard(request);
    return Promise.reject(tooLarge(limits.maxBytes));
  }

  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // Listeners stay where they are when it is over: taking them off costs more than the rest of a small body.
    let settled = false;

    let timer: NodeJS.Timeout | undefined;
    // A small body comes in one piece with its headers, and is read by now: only others need a deadline.
    queueMicrotask(() => {
      if (!settled) timer = setTimeout(late, limits.timeoutMs);
    });
    function late(): void {
      refuse(new BodyError('timeout', `the body was not complete after ${limits.timeoutMs} ms`));
    }

    function settle(): boolean {
      if (settled) return false;
      settled = true;
      clearTimeout(timer);
      return true;
    }
    function refuse(error: BodyError): void {
      if (!settle()) return;
      chunks.length = 0;
      discard(request);
      reject(error);
    }
    function gone(): void {
      if (settle()) reject(new BodyError('aborted', `the client went away after ${size} bytes of the body`));
    }

    request.on('data', (chunk: Buffer) => {
      if (settled) return;
      size += chunk.length;
      if (size > limits.maxBytes) refuse(tooLarge(limits.maxBytes));
      else chunks.push(chunk);
    });
    request.on('end', () => {
      if (!settle()) return;
      const [only] = chunks;
      resolve(chunks.length === 1 && only ? only : Buffer.concat(chunks, size));
    });
    request.on('error', gone);
    request.on('close', gone);
  });
}

function tooLarge(maxBytes: number): BodyError {
  return new BodyError('too-large', `the body is larger than ${maxBytes} bytes`);
}

function discard(request: IncomingMessage): void {
  const timer = setTimeout(() => request.destroy(), lingerMs).unref();
  const stop = (): void => clearTimeout(timer);
  request.on('error', stop).once('end', stop).once('close', stop).resume();
}
