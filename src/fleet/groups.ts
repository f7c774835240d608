/**
 * Credential groups: the agents whose nodes have the same credential sources, told by the fingerprint that each agent
 * gives at `/v1/info`. A question that one group may not answer is worth asking in another, never twice in the same.
 *
 * Agents whose fingerprint is not known (yet) form one group of their own. It is a passing state, and a group for each would send a denied
 * question to every agent of a cluster that just started.
 */
import type { Clock } from '../telemetry/clock.ts';
import type { Log } from '../telemetry/log.ts';
import { AgentError } from './agent-error.ts';
import { concurrently } from './concurrently.ts';
import type { AgentConnection } from './connection.ts';
import type { AgentAddress, Discovery } from './fleet.ts';

export interface Groups {
  /** Name of the agent's group; equal for agents of one group. */
  readonly groupOf: (agent: AgentAddress) => string;
  readonly size: number;
  /** Resolves when every agent that is known now was asked once, at the latest when `signal` aborts. */
  ready(signal: AbortSignal): Promise<void>;
  readonly close: () => void;
}

export interface GroupsOptions {
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
  /** How long a fingerprint is taken as true. */
  readonly refreshMs?: number;
  /** How often agents are looked at, and one that did not answer is asked again. */
  readonly tickMs?: number;
}

export const unknownGroup = 'unknown';

/** Credentials of nodes change with rollouts of machines and files: minutes are soon enough. */
const defaultRefreshMs = 60_000;
const defaultTickMs = 5000;
/** In a large cluster the questions are spread out: this much time for each agent, ten questions a second. */
const perAgentMs = 100;
const concurrency = 16;
const timeoutMs = 2000;
const maxInfoBytes = 16 * 1024;

/** A fingerprint is a hash; this is room for a longer one of a later version. */
const maxFingerprintLength = 200;

interface Known {
  readonly fingerprint: string;
  readonly until: number;
}

/** Starts to ask the agents of a discovery for their fingerprints, until it is closed. */
export function createGroups(options: GroupsOptions): Groups {
  const { discovery, connection, clock, log } = options;
  const tickMs = options.tickMs ?? defaultTickMs;
  const stopping = new AbortController();
  const known = new Map<string, Known>();
  let running: Promise<void> | undefined;

  async function learn(agent: AgentAddress, lifetimeMs: number): Promise<void> {
    try {
      const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]);
      const answer = await connection.json(agent.url, '/v1/info', { signal, maxBytes: maxInfoBytes });
      const fingerprint = fingerprintIn(answer);
      if (fingerprint === undefined)
        throw new AgentError('bad-answer', agent.url, 'the agent says no fingerprint');
      known.set(agent.url, { fingerprint, until: clock.monotonic() + lifetimeMs });
    } catch (error) {
      // The last fingerprint stands: an agent that cannot be reached has not changed its node's credentials.
      if (!stopping.signal.aborted)
        log.debug({ agent: agent.url, err: error }, 'an agent gave no information');
    }
  }

  async function refresh(): Promise<void> {
    const agents = discovery.current();
    const urls = new Set(agents.map((agent) => agent.url));
    for (const url of known.keys()) if (!urls.has(url)) known.delete(url);
    const now = clock.monotonic();
    const due = agents.filter((agent) => (known.get(agent.url)?.until ?? 0) <= now);
    const lifetimeMs = Math.max(options.refreshMs ?? defaultRefreshMs, agents.length * perAgentMs);
    await concurrently(due, concurrency, (agent) => learn(agent, lifetimeMs));
  }

  /** One round at a time; who comes during a round waits for the next one. */
  function round(): Promise<void> {
    const next = (running ?? Promise.resolve()).then(refresh).finally(() => {
      if (running === next) running = undefined;
    });
    running = next;
    return next;
  }

  function tick(): void {
    if (running === undefined && !stopping.signal.aborted) void round();
  }
  discovery.onChange(tick);
  const timer = setInterval(tick, tickMs);
  tick();

  return {
    groupOf: (agent) => known.get(agent.url)?.fingerprint ?? unknownGroup,
    get size() {
      return new Set(discovery.current().map((agent) => known.get(agent.url)?.fingerprint ?? unknownGroup))
        .size;
    },
    ready: (signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
        void round().then(resolve);
      }),
    close: () => {
      clearInterval(timer);
      stopping.abort();
    },
  };
}

/** Only what is needed is read; an agent of a later version may say more. */
function fingerprintIn(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null || !('credentialFingerprint' in answer)) return undefined;
  const { credentialFingerprint: found } = answer;
  const usable = typeof found === 'string' && found !== '' && found.length <= maxFingerprintLength;
  return usable ? found : undefined;
}
