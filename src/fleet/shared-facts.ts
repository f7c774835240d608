/**
 * The shared facts of all agents, for a webhook that starts. An agent is believed only about the repositories
 * that it owns: a compromised node cannot answer for the images of others.
 */
import { once, setMaxListeners } from 'node:events';
import { PassThrough } from 'node:stream';
import { ifError } from '../async/if-error.ts';
import { BoundedMap } from '../async/bounded-map.ts';
import { concurrently } from '../async/concurrently.ts';
import type { ImageFacts } from '../images/facts/facts.ts';
import { validReference } from '../images/references/reference.ts';
import { acceptFacts, RejectedFacts } from './agents/accept.ts';
import { factsOfLine } from './agents/requests.ts';
import { AgentError, type AgentConnection } from './agents/connection.ts';
import type { AgentAddress } from './discovery/discovery.ts';
import { createOwnerOf } from './groups/rendezvous.ts';
import { rejectReasons, type RejectReason } from './metrics.ts';
import type { FleetLookupContext } from './lookup/lookup.ts';

/** A few hundred bytes for 100,000 images, twice: repositories move when nodes come and go. */
const defaultMaxBytes = 128 * 1024 * 1024;
/** Streams that are read at the same time. */
const concurrency = 8;
/** Facts that wait for the reader. */
const maxWaiting = 64;

/** Images with a known time. A repeated image beyond this is only learned once more. */
const maxRemembered = 50_000;

/** Log lines by the reason why facts are ignored. */
const rejections: Readonly<Record<RejectReason, string>> = {
  invalid: 'an agent sent invalid image facts; they are ignored',
  'not-owner':
    'an agent sent facts of images that other agents own, as is usual while agents come and go; they are ignored',
  'no-proof': 'an agent sent facts of digests without documents that prove them; they are ignored',
};

export interface SharedFactsOptions extends Pick<
  FleetLookupContext,
  'freshness' | 'meters' | 'clock' | 'log'
> {
  readonly connection: AgentConnection;
  readonly agents: readonly AgentAddress[];
  readonly signal: AbortSignal;
  /** All agents together may send this many. */
  readonly maxBytes?: number;
}

/**
 * Yields facts as they come; facts of the same image again only if they are fresher. An agent that fails is
 * logged, and so are the lines that were rejected. Ends without an error when `signal` aborts.
 */
export async function* sharedFacts(options: SharedFactsOptions): AsyncIterable<ImageFacts> {
  const { agents, connection, freshness, meters, clock, log } = options;
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  setMaxListeners(0, signal);
  const ownerOf = createOwnerOf(agents);
  const freshest = new BoundedMap<string, number>(maxRemembered);
  const found = new PassThrough({ objectMode: true, highWaterMark: maxWaiting });
  found.setMaxListeners(0);
  let budget = options.maxBytes ?? defaultMaxBytes;

  /** The facts in a line, or why they are rejected. */
  async function accept(line: string, agent: AgentAddress): Promise<ImageFacts | RejectReason> {
    const facts = factsOfLine(line);
    const reference = facts && validReference(facts.image);
    if (!reference) return 'invalid';
    if (ownerOf(reference.repository)?.url !== agent.url) return 'not-owner';
    const accepting = acceptFacts(facts, reference, freshness, clock.now());
    return await accepting.catch(ifError(RejectedFacts, ({ reason }) => reason));
  }

  async function read(agent: AgentAddress): Promise<void> {
    if (signal.aborted || budget <= 0) return;
    const rejected = { invalid: 0, 'not-owner': 0, 'no-proof': 0 };
    for await (const line of connection.lines(agent.url, '/v1/facts', { signal, maxBytes: budget })) {
      budget -= Buffer.byteLength(line) + 1;
      if (budget <= 0) break;
      const facts = await accept(line, agent);
      if (typeof facts === 'string') {
        rejected[facts] += 1;
        meters.rejected(facts);
        continue;
      }
      const until = Date.parse(facts.freshUntil);
      if ((freshest.get(facts.image) ?? 0) >= until) continue;
      freshest.set(facts.image, until);
      if (!found.write(facts)) await once(found, 'drain', { signal });
    }
    for (const reason of rejectReasons)
      if (rejected[reason] > 0) log.warn({ agent: agent.url, lines: rejected[reason] }, rejections[reason]);
  }

  async function readAll(): Promise<void> {
    await concurrently(agents, concurrency, async (agent) => {
      try {
        await read(agent);
      } catch (error) {
        if (!signal.aborted)
          log.warn(
            {
              agent: agent.url,
              ...(error instanceof AgentError ? { reason: error.message } : { err: error }),
            },
            'an agent did not send all its image facts',
          );
      }
    });
    if (budget <= 0)
      log.warn('the agents have more image facts than fit; the others are looked up when they are needed');
    found.end();
  }

  void readAll();
  try {
    for await (const facts of found as AsyncIterable<ImageFacts>) {
      if (signal.aborted) return;
      yield facts;
    }
  } finally {
    stop.abort();
  }
}
