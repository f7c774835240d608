/**
 * A connection with a certificate that may not exist yet: the first controller of a new cluster issues it.
 * Until it can be opened, every agent is unreachable.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { AgentError, type AgentConnection } from './connection.ts';
import { messageOf } from '../../names/printable.ts';

/** A certificate is written within a second or two after a controller leads. */
const againMs = 1000;

/** Calls `open` until it succeeds or the connection is closed. */
export function lateConnection(
  open: () => Promise<AgentConnection>,
  log: Log,
  clock: Clock = systemClock,
): AgentConnection {
  const closing = new AbortController();
  let connection: AgentConnection | undefined;

  async function opening(): Promise<void> {
    let logged = '';
    while (!closing.signal.aborted) {
      try {
        connection = await open();
        return;
      } catch (error) {
        const problem = messageOf(error);
        if (problem !== logged)
          log.info({ problem }, 'agents cannot be queried until the controller writes a certificate');
        logged = problem;
        await clock.sleep(againMs, closing.signal).catch(() => undefined);
      }
    }
  }

  const opened = opening();

  function ready(url: string): AgentConnection {
    if (connection) return connection;
    throw new AgentError('unreachable', url, 'there is no client certificate for agents yet');
  }

  return {
    json: async (url, path, call) => await ready(url).json(url, path, call),
    lines: async function* (url, path, call) {
      yield* ready(url).lines(url, path, call);
    },
    close: async () => {
      closing.abort(new Error('closed'));
      await opened;
      await connection?.close();
    },
  };
}
