/** Reading answers of the API server, each with a limit in bytes. */
import type { IncomingMessage } from 'node:http';
import { KubeError } from './errors.ts';

/** Two objects of etcd's limit and the event around them. */
const maxLine = 4 * 1024 * 1024;

/** Reads an answer whole, as text. */
export async function readAll(
  answer: IncomingMessage,
  limit: number,
  where: string,
  host: string,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) {
        answer.destroy();
        throw new KubeError('too-large', where, `${where}: more than ${limit} bytes from ${host}`);
      }
      chunks.push(chunk);
    }
  } catch (cause) {
    throw connectionError(cause, where, host, signal);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The lines of an answer as they come, without empty ones. */
export async function* splitLines(answer: IncomingMessage, where: string): AsyncIterable<string> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
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
    if (length > maxLine)
      throw new KubeError('too-large', where, `${where}: an event of more than ${maxLine} bytes`);
    parts.push(chunk.subarray(start));
  }
}

/** What a failed connection means to the caller. */
export function connectionError(cause: unknown, where: string, host: string, signal: AbortSignal): KubeError {
  if (cause instanceof KubeError) return cause;
  if (signal.aborted)
    return new KubeError('timeout', where, `${where}: given up: ${textOf(signal.reason)}`, { cause });
  return new KubeError('unavailable', where, `${where}: ${host} cannot be reached: ${textOf(cause)}`, {
    cause,
  });
}

/** An error in words. */
export function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
