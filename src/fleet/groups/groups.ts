/**
 * Credential groups: the agents whose nodes have the same credential sources, told by the fingerprint that each agent
 * gives at `/v1/info`. A question that one group may not answer is worth asking in another, never twice in the same.
 *
 * Agents whose fingerprint is not known (yet) form one group of their own. It is a passing state, and a group for each would send a denied
 * question to every agent of a cluster that just started.
 */
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { AgentError } from '../agents/agent-error.ts';
import { readAgentInfo, type AgentInfo } from '../agents/agent-info.ts';
import { concurrently } from '../../async/concurrently.ts';
import type { AgentConnection } from '../agents/connection.ts';
import type { AgentAddress, Discovery } from '../fleet.ts';

/** The agents of one group. */
export interface Members {
  readonly fingerprint: string;
  readonly agents: readonly AgentAddress[];
  /** Names of their nodes, sorted; agents whose node nobody knows by name are left out. */
  readonly nodes: readonly string[];
  /** Architectures of their nodes, sorted. */
  readonly architectures: readonly string[];
}

export interface Groups {
  /** Name of the agent's group; equal for agents of one group. */
  readonly groupOf: (agent: Pick<AgentAddress, 'url'>) => string;
  readonly size: number;
  /** The groups whose fingerprint is known, by it; the same map until something changes. */
  members(): ReadonlyMap<string, Members>;
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

interface Known {
  readonly info: AgentInfo;
  readonly until: number;
}

/** Starts to ask the agents of a discovery for their fingerprints, until it is closed. */
export function createGroups(options: GroupsOptions): Groups {
  const { discovery, connection, clock, log } = options;
  const tickMs = options.tickMs ?? defaultTickMs;
  const stopping = new AbortController();
  const known = new Map<string, Known>();
  let running: Promise<void> | undefined;
  let grouped:
    { readonly of: readonly AgentAddress[]; readonly members: ReadonlyMap<string, Members> } | undefined;

  async function learn(agent: AgentAddress, lifetimeMs: number): Promise<void> {
    try {
      const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]);
      const answer = await connection.json(agent.url, '/v1/info', { signal, maxBytes: maxInfoBytes });
      const info = readAgentInfo(answer);
      if (info === undefined) throw new AgentError('bad-answer', agent.url, 'the agent says no fingerprint');
      known.set(agent.url, { info, until: clock.monotonic() + lifetimeMs });
      grouped = undefined;
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

  const groupOf: Groups['groupOf'] = ({ url }) => known.get(url)?.info.fingerprint ?? unknownGroup;

  function membersOf(agents: readonly AgentAddress[]): ReadonlyMap<string, Members> {
    const byFingerprint = Map.groupBy(agents, groupOf);
    byFingerprint.delete(unknownGroup);
    return new Map(
      [...byFingerprint].map(([fingerprint, own]) => {
        const nodes = own.map(({ url, node }) => node ?? known.get(url)?.info.node);
        const architectures = own.map(({ url }) => known.get(url)?.info.architecture);
        return [
          fingerprint,
          { fingerprint, agents: own, nodes: distinct(nodes), architectures: distinct(architectures) },
        ];
      }),
    );
  }

  return {
    groupOf,
    get size() {
      return new Set(discovery.current().map(groupOf)).size;
    },
    members: () => {
      const agents = discovery.current();
      if (grouped?.of !== agents) grouped = { of: agents, members: membersOf(agents) };
      return grouped.members;
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

function distinct(texts: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(texts.filter((text) => text !== undefined))].sort();
}
