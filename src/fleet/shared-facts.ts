/**
 * What the agents know already, for a webhook that starts: each agent streams the facts that may be told to anyone, and
 * every agent is asked, because each knows the repositories that it owns.
 */
import { once, setMaxListeners } from 'node:events';
import { PassThrough } from 'node:stream';
import type { ImageFacts } from '../images/facts/facts.ts';
import type { Log } from '../telemetry/log.ts';
import { concurrently } from '../async/concurrently.ts';
import type { AgentConnection } from './agents/connection.ts';
import { factsOfLine } from './agents/facts-response.ts';
import type { AgentAddress } from './fleet.ts';

export interface KnownFactsOptions {
  readonly agents: readonly AgentAddress[];
  readonly connection: AgentConnection;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** All agents together may send this many bytes. */
  readonly maxBytes?: number;
}

/** Some hundred bytes for each of 100,000 images, twice because agents change their repositories when nodes come and go. */
const defaultMaxBytes = 128 * 1024 * 1024;
/** Streams that are read at the same time. */
const concurrency = 8;
/** Facts that wait for the reader; agents wait beyond that. */
const waitingFacts = 64;

/**
 * Yields each fact as it comes; an image that several agents know comes again only where the later answer is fresher. An
 * agent that fails is logged and left out, and what it told before that is kept. Ends without an error when `signal` aborts.
 */
export async function* knownFacts(options: KnownFactsOptions): AsyncIterable<ImageFacts> {
  const { agents, connection, log } = options;
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  setMaxListeners(0, signal);
  const told = new Map<string, string>();
  const found = new PassThrough({ objectMode: true, highWaterMark: waitingFacts });
  found.setMaxListeners(0);
  let budget = options.maxBytes ?? defaultMaxBytes;

  async function read(agent: AgentAddress): Promise<void> {
    if (signal.aborted || budget <= 0) return;
    let wrong = 0;
    for await (const line of connection.lines(agent.url, '/v1/facts', { signal, maxBytes: budget })) {
      budget -= Buffer.byteLength(line) + 1;
      if (budget <= 0) return;
      const facts = factsOfLine(line);
      if (!facts) wrong += 1;
      else if ((told.get(facts.image) ?? '') < facts.freshUntil) {
        told.set(facts.image, facts.freshUntil);
        if (!found.write(facts)) await once(found, 'drain', { signal });
      }
    }
    if (wrong > 0) log.warn({ agent: agent.url, lines: wrong }, 'an agent told facts that cannot be used');
  }

  async function readAll(): Promise<void> {
    await concurrently(agents, concurrency, async (agent) => {
      try {
        await read(agent);
      } catch (error) {
        if (!signal.aborted)
          log.warn({ agent: agent.url, err: error }, 'an agent could not tell all it knows');
      }
    });
    if (budget <= 0) log.warn('the agents know more than is taken; the rest is asked for when it is needed');
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
