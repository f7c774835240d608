/** The client in `archwright inspect`. It loads little: several may run in the agent's container. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { errnoOf } from '../../src/files/read.ts';
import { inspectPath, type Inspected } from './protocol.ts';

/** The path is too long (EINVAL), nothing is there, nothing listens, or it is not for this user. */
const noAgent: ReadonlySet<string | undefined> = new Set([
  'EINVAL',
  'ENOENT',
  'ECONNREFUSED',
  'EACCES',
  'ENOTSOCK',
]);

/** 1,000 images with some requests each. */
const maxBytes = 32 * 1024 * 1024;

/** The agent refused or failed to inspect. */
export class LocalInspectionError extends Error {
  override readonly name = 'LocalInspectionError';
  readonly code = 'unavailable';
  readonly temporary = true;
}

/** @returns undefined without an agent for such a request @throws LocalInspectionError, or the reason */
export async function askAgent(
  socketPath: string,
  body: object,
  signal: AbortSignal,
): Promise<Inspected | undefined> {
  try {
    const { status, text } = await exchange(socketPath, JSON.stringify(body), signal);
    const answer: unknown = JSON.parse(text);
    // The agent is this program, and only root can open its socket.
    if (status === 200) return answer as Inspected;
    if (status === 400) return undefined;
    const { error } = answer as { readonly error: { readonly message: string } };
    throw new LocalInspectionError(`the agent answered ${status}: ${error.message}`);
  } catch (error) {
    if (noAgent.has(errnoOf(error))) return undefined;
    if (signal.aborted || error instanceof LocalInspectionError) throw error;
    throw new LocalInspectionError('the agent ended while it inspected', { cause: error });
  }
}

async function exchange(
  socketPath: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = httpRequest({ socketPath, method: 'POST', path: inspectPath, headers, signal }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new LocalInspectionError('the answer of the agent is too large');
    chunks.push(chunk);
  }
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') };
}
