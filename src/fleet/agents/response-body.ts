/** Responses of agents, read under limits: an agent is part of this program, but its node may be compromised. */
import { readBody, readLines } from '../../http/body.ts';
import type { OpenResponse } from '../../http/exchange.ts';
import { messageWithCause, TransportError } from '../../http/transport-error.ts';
import { AgentError, type AgentErrorCode } from './agent-error.ts';

/** One set of image facts has some hundred bytes; this is room for an index with every platform there is. */
const maxLineBytes = 64 * 1024;
/** `{"error": {"code", "message"}}`. */
const maxErrorBytes = 8 * 1024;

/**
 * The JSON of a response with status 200.
 * @throws AgentError for every other status, and for a body that is too large, cut off or not JSON
 */
export async function readJson(response: OpenResponse, url: string, maxBytes: number): Promise<unknown> {
  await checkStatus(response, url);
  const body = await read(response, url, maxBytes);
  try {
    return JSON.parse(body) as unknown;
  } catch (cause) {
    throw new AgentError('bad-answer', url, 'the agent answered with something that is not JSON', { cause });
  }
}

/**
 * The lines of a response with status 200, without empty ones.
 * @throws AgentError as `readJson`; lines before the error have been yielded
 */
export async function* jsonLines(
  response: OpenResponse,
  url: string,
  maxBytes: number,
): AsyncIterable<string> {
  await checkStatus(response, url);
  try {
    yield* readLines(response, { maxLineBytes, maxBytes });
  } catch (cause) {
    throw agentError(cause, url);
  }
}

/** Maps a failed exchange. */
export function agentError(cause: unknown, url: string): unknown {
  if (!(cause instanceof TransportError)) return cause;
  const { failure, phase, where } = cause;
  const make = (code: AgentErrorCode, message: string): AgentError =>
    new AgentError(code, url, message, { cause });
  if (failure === 'too-large' || failure === 'encoded') return make('bad-answer', cause.message);
  if (failure === 'aborted') {
    return phase === 'body'
      ? make('timeout', 'the response was not complete in time')
      : make('timeout', `no response from ${where} in time`);
  }
  if (phase === 'body') return make('lost', 'the connection was lost within the response');
  const reason = messageWithCause(cause).slice(0, 300);
  return phase === 'header'
    ? make('lost', `the connection to ${where} was lost: ${reason}`)
    : make('unreachable', `${where} cannot be reached: ${reason}`);
}

async function checkStatus(response: OpenResponse, url: string): Promise<void> {
  const { status } = response;
  if (status === 200) return;
  const message = messageIn(await read(response, url, maxErrorBytes));
  throw new AgentError(codeOf(status), url, `the agent answered ${status}${message}`);
}

function codeOf(status: number): AgentErrorCode {
  if (status === 401 || status === 403) return 'refused';
  if (status === 408 || status === 429 || status >= 500) return 'overloaded';
  return status >= 400 ? 'rejected' : 'bad-answer';
}

/** The agent's own description of its error. */
function messageIn(body: string): string {
  try {
    const parsed = JSON.parse(body) as { error?: { message?: unknown } } | null;
    const message = parsed?.error?.message;
    return typeof message === 'string' ? `: ${message.slice(0, 300)}` : '';
  } catch {
    return '';
  }
}

async function read(response: OpenResponse, url: string, maxBytes: number): Promise<string> {
  try {
    return (await readBody(response, maxBytes)).toString('utf8');
  } catch (cause) {
    throw agentError(cause, url);
  }
}
