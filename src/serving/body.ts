/**
 * Reads the body of a request into one buffer, with a limit in bytes, a deadline and a least speed. After a
 * refusal, the rest of the body is read for a moment, so that the client receives the caller's answer; except
 * when the process is overloaded.
 */
import type { IncomingMessage } from 'node:http';
import type { BodyShare } from './body-budget.ts';

export class BodyError extends Error {
  readonly code: 'too-large' | 'aborted' | 'timeout' | 'overloaded';
  constructor(code: BodyError['code'], message: string) {
    super(message);
    this.name = 'BodyError';
    this.code = code;
  }
}

export interface BodyLimits {
  readonly maxBytes: number;
  /** From the call to the last byte. */
  readonly timeoutMs: number;
  /** The body's part of a budget; the caller releases it. */
  readonly share?: BodyShare;
}

/** A body may be slow for this long: lost packets are sent again within it. */
const slowMs = 2000;

/** Then it must have had this speed on average. 7 MiB within the 10 s of a webhook need ten times as much. */
const leastBytesPerSecond = 64 * 1024;

const checkMs = 500;

/** What a chunk costs however short it is: its buffer has two objects, and memory outside of the heap. */
const leastChunkBytes = 512;

/** How long a refused body is drained: after an early close, a writing client misses the answer. */
const lingerMs = 3000;

/**
 * @param request with an unread body
 * @throws BodyError `too-large` as soon as Content-Length or the bytes exceed the limit; `aborted` if the
 *   client disconnects or sends less than its Content-Length; `timeout` after `timeoutMs`, or if it is slow;
 *   `overloaded` if the budget has no room
 */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limits.maxBytes) {
    discard(request);
    return Promise.reject(tooLarge(limits.maxBytes));
  }

  const { share, timeoutMs } = limits;
  if (share?.hasRoom(announced) === false) return Promise.reject(overloaded());

  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // Listeners stay: removing them costs more than the rest of a small body.
    let settled = false;

    let timer: NodeJS.Timeout | undefined;
    // A small body arrives with its headers and is read by now, without a timer.
    queueMicrotask(() => {
      if (!settled) checkIn(Math.min(slowMs, timeoutMs), 0);
    });
    function checkIn(ms: number, waited: number): void {
      timer = setTimeout(check, ms, waited + ms);
    }
    function check(waited: number): void {
      if (waited >= timeoutMs)
        refuse(new BodyError('timeout', `the body was not complete after ${timeoutMs} ms`));
      else if (size < (waited / 1000) * leastBytesPerSecond)
        refuse(new BodyError('timeout', `the body is too slow: ${size} bytes after ${waited} ms`));
      else checkIn(Math.min(checkMs, timeoutMs - waited), waited);
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
      // The answer closes the connection. Reading on would cost an overloaded process more.
      if (error.code !== 'overloaded') discard(request);
      reject(error);
    }
    function gone(): void {
      if (settle())
        reject(new BodyError('aborted', `the client disconnected after ${size} bytes of the body`));
    }

    request.on('data', (chunk: Buffer) => {
      if (settled) return;
      size += chunk.length;
      if (size > limits.maxBytes) refuse(tooLarge(limits.maxBytes));
      else if (share?.grow(Math.max(chunk.length, leastChunkBytes), announced) === false)
        refuse(overloaded());
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

function overloaded(): BodyError {
  return new BodyError('overloaded', 'too many bodies are in flight; try again');
}

function discard(request: IncomingMessage): void {
  const timer = setTimeout(() => request.destroy(), lingerMs).unref();
  const stop = (): void => clearTimeout(timer);
  request.on('error', stop).once('end', stop).once('close', stop).resume();
}
