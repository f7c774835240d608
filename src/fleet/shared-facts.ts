/**
 * The shared facts of all agents, for a webhook that starts. An agent is believed only about the repositories
 * that it owns: a compromised node cannot answer for the images of others.
 */
import { setMaxListeners } from 'node:events';
import { concurrently } from '../async/concurrently.ts';
import { isOfPod, type ImageFacts } from '../images/facts/facts.ts';
import { validReference } from '../images/references/reference.ts';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import { AgentError, type AgentConnection } from './connection.ts';
import type { AgentAddress } from './discovery.ts';
import { factsOfLine } from './info.ts';
import { rejectReasons, type FleetMeters, type RejectReason } from './metrics.ts';
import { Ranking } from './rank.ts';

/** A few hundred bytes for 100,000 images, twice: repositories move when nodes come and go. */
const defaultMaxBytes = 128 * 1024 * 1024;
/** Streams that are read at the same time. */
const concurrency = 8;

/** Log lines by the reason why facts are ignored. */
const rejections: Readonly<Record<RejectReason, string>> = {
  invalid: 'an agent sent invalid image facts; they are ignored',
  'not-owner':
    'an agent sent facts of images that other agents own, as is usual while agents come and go; they are ignored',
};

export interface SharedFactsOptions {
  readonly agents: readonly AgentAddress[];
  readonly connection: AgentConnection;
  readonly meters: Pick<FleetMeters, 'rejected'>;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** All agents together may send this many. */
  readonly maxBytes?: number | undefined;
}

/**
 * Passes facts on as they come. An agent that fails is logged, and so are the lines that were rejected. Ends
 * without an error when `signal` aborts.
 */
export async function streamSharedFacts(
  { agents, connection, meters, log, signal, maxBytes = defaultMaxBytes }: SharedFactsOptions,
  onFacts: (facts: ImageFacts) => void,
): Promise<void> {
  setMaxListeners(0, signal);
  const ranking = new Ranking(agents);
  let budget = maxBytes;

  /** The facts in a line, or why they are rejected. */
  function accept(line: string, { url }: AgentAddress): ImageFacts | RejectReason {
    const facts = validFacts(line, url);
    const reference = facts && validReference(facts.image);
    if (!reference || isOfPod(facts)) return 'invalid';
    return ranking.owner(reference.repository)?.url === url ? facts : 'not-owner';
  }

  await concurrently(agents, concurrency, async (agent) => {
    const rejected = { invalid: 0, 'not-owner': 0 };
    try {
      for await (const line of connection.lines(agent.url, '/v1/facts', { signal, maxBytes: budget })) {
        budget -= Buffer.byteLength(line) + 1;
        if (budget <= 0 || signal.aborted) break;
        const facts = accept(line, agent);
        if (typeof facts === 'object') onFacts(facts);
        else {
          rejected[facts] += 1;
          meters.rejected(facts);
        }
      }
    } catch (error) {
      const reason = messageOf(error);
      if (!signal.aborted)
        log.warn({ agent: agent.url, reason }, 'an agent did not send all its image facts');
    }
    for (const reason of rejectReasons)
      if (rejected[reason] > 0) log.warn({ agent: agent.url, lines: rejected[reason] }, rejections[reason]);
  });
  if (budget <= 0)
    log.warn('the agents have more image facts than fit; the others are looked up when they are needed');
}

function validFacts(line: string, url: string): ImageFacts | undefined {
  try {
    return factsOfLine(line, url);
  } catch (error) {
    if (error instanceof AgentError) return undefined;
    throw error;
  }
}
