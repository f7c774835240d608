/**
 * The shared facts of all agents, for a webhook that starts. An agent is believed only about the repositories
 * that it owns: a compromised node cannot answer for the images of others.
 */
import { setMaxListeners } from 'node:events';
import { concurrently } from '../async/concurrently.ts';
import { parseJson } from '../http/json.ts';
import { isOfPod, type ImageFacts } from '../images/facts/facts.ts';
import { InvalidFacts, readFacts } from '../images/facts/wire.ts';
import { validReference } from '../images/references/reference.ts';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import type { AgentConnection } from './connection.ts';
import { Ranking, type AgentAddress } from './discovery.ts';

/** All agents together: a few hundred bytes for 100,000 images, twice, as nodes come and go. */
const maxBytes = 128 * 1024 * 1024;
/** Streams that are read at the same time. */
const concurrency = 8;

/** Passes facts on as they come; logs failing agents and rejected lines. Ends when `signal` aborts. */
export async function streamSharedFacts(
  agents: readonly AgentAddress[],
  { connection, log }: { readonly connection: AgentConnection; readonly log: Log },
  onFacts: (facts: ImageFacts) => void,
  signal: AbortSignal,
): Promise<void> {
  setMaxListeners(0, signal);
  const ranking = new Ranking(agents);
  let budget = maxBytes;

  await concurrently(agents, concurrency, async (agent) => {
    let rejected = 0;
    try {
      for await (const line of connection.lines(agent.url, '/v1/facts', { signal, maxBytes: budget })) {
        budget -= Buffer.byteLength(line);
        if (budget <= 0 || signal.aborted) break;
        const facts = accepted(line, agent, ranking);
        if (facts) onFacts(facts);
        else rejected += 1;
      }
    } catch (error) {
      const reason = messageOf(error);
      if (!signal.aborted)
        log.warn({ agent: agent.url, reason }, 'an agent did not send all its image facts');
    }
    // The latter is usual while agents come and go.
    const message = 'an agent sent image facts that are invalid, or that other agents own; they are ignored';
    if (rejected > 0) log.warn({ agent: agent.url, lines: rejected }, message);
  });
  if (budget <= 0)
    log.warn('the agents have more image facts than fit; the others are looked up when they are needed');
}

/** The facts in a line; `undefined` if they are invalid, or another agent owns their repository. */
function accepted(line: string, { url }: AgentAddress, ranking: Ranking): ImageFacts | undefined {
  try {
    const facts = readFacts(parseJson(line));
    const reference = validReference(facts.image);
    const isOwner = reference && ranking.owner(reference.repository)?.url === url;
    return isOwner && !isOfPod(facts) ? facts : undefined;
  } catch (error) {
    if (error instanceof InvalidFacts) return undefined;
    throw error;
  }
}
