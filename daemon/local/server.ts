/** The agent's side of `protocol.ts`. Without the socket, `inspect` still works as a process of its own. */
import { once } from 'node:events';
import { chmod, lstat, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { errnoOf } from '../../src/files/read.ts';
import { readBody } from '../../src/serving/body.ts';
import { messageOf } from '../../src/names/printable.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { ApiError, apiErrorOf } from '../api/api-error.ts';
import { defaultApiLimits } from '../api/api.ts';
import { parseFactsRequest, type FactsRequest } from '../api/facts-request.ts';
import { inspectPath, type Inspected } from './protocol.ts';

export interface LocalInspectionOptions {
  /** Path of the socket. */
  readonly path: string;
  /** @param signal aborts when the client disconnects */
  readonly inspect: (request: FactsRequest, signal: AbortSignal) => Promise<Inspected>;
  readonly log: Log;
}

/** People start these by hand. */
const maxRequests = 8;

/** Limit of Linux (`sun_path` in unix(7), with its final NUL). */
const maxPathBytes = 107;

/** @returns undefined if the socket cannot be made; then `inspect` inspects itself */
export async function startLocalInspection(
  options: LocalInspectionOptions,
): Promise<LocalInspection | undefined> {
  const { path, log } = options;
  try {
    if (Buffer.byteLength(path) > maxPathBytes) throw new Error('its path is too long');
    await removeSocket(path);
    const inspection = new LocalInspection(options);
    await inspection.listen();
    return inspection;
  } catch (error) {
    log.warn(
      { path, problem: messageOf(error) },
      'no socket for inspect; it will run as a process of its own',
    );
    return undefined;
  }
}

export class LocalInspection {
  readonly #options: LocalInspectionOptions;
  readonly #server: Server;
  #requests = 0;

  constructor(options: LocalInspectionOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  async listen(): Promise<void> {
    const { path } = this.#options;
    this.#server.listen(path);
    await once(this.#server, 'listening');
    // With the usual umask, only the owner can connect from the beginning.
    await chmod(path, 0o600);
  }

  /** Ends at once; Node removes the socket. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client disconnected')));
    this.#requests += 1;
    try {
      if (request.method !== 'POST' || request.url !== inspectPath)
        throw new ApiError('not-found', `POST ${inspectPath} only`);
      if (this.#requests > maxRequests) throw new ApiError('overloaded', 'too many concurrent inspections');
      const { maxBodyBytes: maxBytes, bodyTimeoutMs: timeoutMs } = defaultApiLimits;
      const parsed = parseFactsRequest(await readBody(request, { maxBytes, timeoutMs }));
      send(response, 200, await this.#options.inspect(parsed, gone.signal));
    } catch (error) {
      const { code, status, message } = apiErrorOf(error);
      if (gone.signal.aborted) return;
      if (code === 'internal') this.#options.log.error({ err: error }, 'an inspection failed unexpectedly');
      send(response, status, { error: { code, message } });
    } finally {
      this.#requests -= 1;
    }
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(body));
}

/** A killed agent leaves its socket, and with `agent.stateHostPath` the next one finds it. */
async function removeSocket(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isSocket()) await rm(path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}
