/** Reading what an agent answers, with limits: an agent is one of ours, but its node may not be any more. */
import type { IncomingMessage } from 'node:http';
import { AgentError, type AgentErrorCode } from './agent-error.ts';

/** One set of image facts has some hundred bytes; this is room for an index with every platform there is. */
const maxLineBytes = 64 * 1024;
/** `{"error": {"code", "message"}}`. */
const maxErrorBytes = 8 * 1024;

/**
 * The JSON of an answer with status 200.
 * @throws AgentError for every other status, and for a body that is too large, cut off or no JSON
 */
export async function bodyOf(
  answer: IncomingMessage,
  url: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<unknown> {
  await checkStatus(answer, url, signal);
  const body = await readAll(answer, url, maxBytes, signal);
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch (cause) {
    throw new AgentError('bad-answer', url, 'the agent answered with something that is not JSON', { cause });
  }
}

/**
 * The lines of an answer with status 200, without empty ones.
 * @throws AgentError as `bodyOf`; what came before it has been yielded
 */
export async function* linesOf(
  answer: IncomingMessage,
  url: string,
  maxBytes: number,
  signal: AbortSignal,
): AsyncIterable<string> {
  await checkStatus(answer, url, signal);
  let total = 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunksOf(answer, url, signal)) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge(url, maxBytes);
    const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      if (end > start) yield data.toString('utf8', start, end);
      start = end + 1;
    }
    rest = data.subarray(start);
    if (rest.length > maxLineBytes) throw tooLarge(url, maxLineBytes);
  }
  if (rest.length > 0) throw new AgentError('lost', url, 'the answer ended within a line');
}

async function checkStatus(answer: IncomingMessage, url: string, signal: AbortSignal): Promise<void> {
  const status = answer.statusCode ?? 0;
  if (status === 200) return;
  const body = await readAll(answer, url, maxErrorBytes, signal);
  throw new AgentError(codeOf(status), url, `the agent answered ${status}${messageOf(body)}`);
}

function codeOf(status: number): AgentErrorCode {
  if (status === 401 || status === 403) return 'refused';
  if (status === 408 || status === 429 || status >= 500) return 'overloaded';
  return status >= 400 ? 'rejected' : 'bad-answer';
}

/** What the agent says of its own error, for people. */
function messageOf(body: Buffer): string {
  try {
    const parsed = JSON.parse(body.toString('utf8')) as { error?: { message?: unknown } } | null;
    const message = parsed?.error?.message;
    return typeof message === 'string' ? `: ${message.slice(0, 300)}` : '';
  } catch {
    return '';
  }
}

async function readAll(
  answer: IncomingMessage,
  url: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of chunksOf(answer, url, signal)) {
    total += chunk.length;
    if (total > maxBytes) throw tooLarge(url, maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The body as it comes; leaving the loop early closes the connection. */
async function* chunksOf(answer: IncomingMessage, url: string, signal: AbortSignal): AsyncIterable<Buffer> {
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) yield chunk;
  } catch (cause) {
    if (signal.aborted)
      throw new AgentError('timeout', url, 'the answer was not complete in time', { cause });
    throw new AgentError('lost', url, 'the connection was lost within the answer', { cause });
  }
}

function tooLarge(url: string, maxBytes: number): AgentError {
  return new AgentError('bad-answer', url, `the answer has more than ${maxBytes} bytes`);
}
