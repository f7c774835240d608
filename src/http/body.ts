/** Reading the body of a response, always under a limit in bytes. */
import type { OpenResponse } from './exchange.ts';
import { TransportError, type TransportFailure } from './transport-error.ts';

/** For a body that may need much memory: reading continues when `admit` resolves. */
export interface LargeBody {
  readonly afterBytes: number;
  /** Called for each further part of the body. */
  readonly admit: () => Promise<void>;
}

/** @throws TransportError `too-large` above `maxBytes`, `encoded` if compressed; and what `admit` throws */
export async function readBody(response: OpenResponse, maxBytes: number, large?: LargeBody): Promise<Buffer> {
  refuseEncoded(response);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of bounded(response, maxBytes)) {
    chunks.push(chunk);
    size += chunk.length;
    if (large && size > large.afterBytes) await large.admit();
  }
  return Buffer.concat(chunks);
}

/** The beginning of the body. More than `maxBytes` is not read, and the connection is then closed. */
export async function readBeginning(response: OpenResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response.chunks()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maxBytes);
}

/**
 * The lines of a body as they come, without empty ones.
 * @param limits `maxBytes` is for all lines together; absent for a response that stays open
 * @throws TransportError `too-large`, `encoded`, and `closed` if the body ends inside a line
 */
export async function* readLines(
  response: OpenResponse,
  limits: { readonly maxLineBytes: number; readonly maxBytes?: number },
): AsyncIterable<string> {
  refuseEncoded(response);
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of bounded(response, limits.maxBytes ?? Infinity)) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end));
      const line = Buffer.concat(parts).toString('utf8');
      parts = [];
      length = 0;
      start = end + 1;
      if (line !== '') yield line;
    }
    if (start === chunk.length) continue;
    length += chunk.length - start;
    if (length > limits.maxLineBytes) throw tooLarge(response, limits.maxLineBytes, 'a line of the response');
    parts.push(chunk.subarray(start));
  }
  if (length > 0) throw bodyError('closed', response, 'the response ended in the middle of a line');
}

async function* bounded(response: OpenResponse, maxBytes: number): AsyncIterable<Buffer> {
  let size = 0;
  for await (const chunk of response.chunks()) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(response, maxBytes);
    yield chunk;
  }
}

/** A compressed body may grow to a thousand times the bytes that were counted. */
function refuseEncoded(response: OpenResponse): void {
  const encoding = response.headers['content-encoding']?.[0] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return;
  const message = 'the response is compressed although the request did not accept that';
  const error = bodyError('encoded', response, message);
  response.close(error);
  throw error;
}

function tooLarge(response: OpenResponse, maxBytes: number, what = 'the response'): TransportError {
  return bodyError('too-large', response, `${what} is larger than ${maxBytes} bytes`);
}

function bodyError(failure: TransportFailure, { where }: OpenResponse, message: string): TransportError {
  return new TransportError(failure, where, message, undefined, 'body');
}
