/** The shared facts of all agents, for a webhook that starts. Each agent streams those of the repositories that it owns. */
import { once, setMaxListeners } from 'node:events';
import { PassThrough } from 'node:stream';
import type { ImageFacts } from '../images/facts/facts.ts';
import type { Log } from '../telemetry/log.ts';
import { concurrently } from '../async/concurrently.ts';
import type { AgentConnection } from './agents/connection.ts';
import { factsOfLine } from './agents/requests.ts';
import type { AgentAddress } from './discovery/discovery.ts';

/** Some hundred bytes for each of 100,000 images, twice because agents change their repositories when nodes come and go. */
const defaultMaxBytes = 128 * 1024 * 1024;
/** Streams that are read at the same time. */
const concurrency = 8;
/** Facts that wait for the reader. */
const maxWaiting = 64;

/**
 * Yields facts as they come; facts of the same image again only if they are fresher. An agent that fails is logged. Ends
 * without an error when `signal` aborts.
 * @param options.maxBytes all agents together may send this many
 */
export async function* sharedFacts({
  agents,
  connection,
  log,
  ...options
}: {
  readonly agents: readonly AgentAddress[];
  readonly connection: AgentConnection;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly maxBytes?: number;
}): AsyncIterable<ImageFacts> {
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  setMaxListeners(0, signal);
  const freshest = new Map<string, string>();
  const found = new PassThrough({ objectMode: true, highWaterMark: maxWaiting });
  found.setMaxListeners(0);
  let budget = options.maxBytes ?? defaultMaxBytes;

  async function read(agent: AgentAddress): Promise<void> {
    if (signal.aborted || budget <= 0) return;
    let invalid = 0;
    for await (const line of connection.lines(agent.url, '/v1/facts', { signal, maxBytes: budget })) {
      budget -= Buffer.byteLength(line) + 1;
      if (budget <= 0) return;
      const facts = factsOfLine(line);
      if (!facts) invalid += 1;
      else if ((freshest.get(facts.image) ?? '') < facts.freshUntil) {
        freshest.set(facts.image, facts.freshUntil);
        if (!found.write(facts)) await once(found, 'drain', { signal });
      }
    }
    if (invalid > 0)
      log.warn({ agent: agent.url, lines: invalid }, 'an agent sent invalid image facts; they are ignored');
  }

  async function readAll(): Promise<void> {
    await concurrently(agents, concurrency, async (agent) => {
      try {
        await read(agent);
      } catch (error) {
        if (!signal.aborted)
          log.warn({ agent: agent.url, err: error }, 'an agent did not send all its image facts');
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
