/**
 * Reads the body of a request into one buffer, with a limit in bytes, a deadline and a least speed. After a
 * refusal, the rest of the body is read for a moment, so that the client receives the caller's answer; except
 * when the process is overloaded.
 */
import type { IncomingMessage } from 'node:http';

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
  /** Time from the call to the last byte. */
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

/** Smaller bodies have their own share: a pod has 5 KiB, and large bodies must not exclude it. */
const smallBytes = 256 * 1024;

/**
 * Bytes of request bodies that a process holds at the same time, from the first byte until the answer. Bytes
 * count when they arrive: an announced length costs the client nothing.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #maxLargeBytes: number;
  #used = 0;

  /** @param maxBytes large bodies take at most three quarters of it */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#maxLargeBytes = (maxBytes / 4) * 3;
  }

  /** Less than a quarter is in use. */
  get isQuiet(): boolean {
    return this.#used < this.#maxBytes / 4;
  }

  /** Opens the account of one body. */
  open(): BodyShare {
    let held = 0;
    const fits = (bytes: number, expected: number): boolean => {
      const isLarge = Math.max(expected, held + bytes) > smallBytes;
      return this.#used + bytes <= (isLarge ? this.#maxLargeBytes : this.#maxBytes);
    };
    return {
      hasRoom: (bytes) => fits(bytes, bytes),
      grow: (bytes, expected = 0) => {
        if (!fits(bytes, expected)) return false;
        held += bytes;
        this.#used += bytes;
        return true;
      },
      release: () => {
        this.#used -= held;
        held = 0;
      },
    };
  }
}

/** What one body holds of the budget. */
export interface BodyShare {
  /** Whether the budget has room for so many more bytes now. Takes nothing. */
  hasRoom(bytes: number): boolean;
  /** @param expected announced length: large bodies count as such at once @returns false without room */
  grow(bytes: number, expected?: number): boolean;
  /** Gives everything back. */
  release(): void;
}
