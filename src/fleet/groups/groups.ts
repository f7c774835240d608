/**
 * Credential groups: agents on nodes with the same credential sources, by the fingerprint that each agent
 * gives at `/v1/info`. If one group has no access to an image, another may have; another agent of the same
 * group never has.
 *
 * Agents without a known fingerprint form one group. That is a passing state: a group for each would send a
 * denied lookup to every agent of a cluster that just started.
 */
import type { Clock } from '../../async/clock.ts';
import { concurrently } from '../../async/concurrently.ts';
import { unlessAborted } from '../../async/wait.ts';
import type { Log } from '../../telemetry/log.ts';
import { AgentError, type AgentConnection } from '../agents/connection.ts';
import { readAgentInfo, type AgentInfo } from '../agents/requests.ts';
import type { SourceProblem } from '../../credentials/credential.ts';
import type { NodeReport } from '../../nodes/node-report.ts';
import type { AgentAddress, Discovery } from '../discovery/discovery.ts';

export interface Members {
  readonly fingerprint: string;
  readonly agents: readonly AgentAddress[];
  /** Names of their nodes, sorted; without agents on unknown nodes. */
  readonly nodes: readonly string[];
  /** Architectures of their nodes, sorted. */
  readonly architectures: readonly string[];
}

export interface GroupsOptions {
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
  /** How long a fingerprint counts, milliseconds. */
  readonly refreshMs?: number;
  /** Whether lookups at the agent fail now; then it is due. */
  readonly isFailing?: (url: string) => boolean;
  /** Called after agents were queried, and after they changed. */
  readonly onRound?: () => void;
}

export const unknownGroup = 'unknown';

/** Credentials of nodes change with rollouts of machines and files: minutes are soon enough. */
const defaultRefreshMs = 60_000;
/** How often due agents are queried, also those that did not answer. */
const tickMs = 5000;
/** In a large cluster the requests are spread out: this much time for each agent, ten requests a second. */
const perAgentMs = 100;
const concurrency = 16;
const timeoutMs = 2000;
const maxInfoBytes = 16 * 1024;

/** Queries the agents of a discovery for their fingerprints, until it is closed. */
export class Groups {
  readonly #options: GroupsOptions;
  readonly #stopping = new AbortController();
  readonly #known = new Map<string, { readonly info: AgentInfo; readonly until: number }>();
  /** The agents that answered the last query. */
  readonly #answering = new Set<string>();
  #round: Promise<void> | undefined;
  #members:
    | { readonly of: readonly AgentAddress[]; readonly byFingerprint: ReadonlyMap<string, Members> }
    | undefined;
  #reports:
    { readonly of: readonly AgentAddress[]; readonly byNode: ReadonlyMap<string, NodeReport> } | undefined;
  #cancelTick = (): void => undefined;

  constructor(options: GroupsOptions) {
    this.#options = options;
    options.discovery.onChange(() => this.#startRound());
    this.#tick();
  }

  /** Name of the agent's group; equal for agents of one group. */
  readonly groupOf = ({ url }: Pick<AgentAddress, 'url'>): string =>
    this.#known.get(url)?.info.fingerprint ?? unknownGroup;

  get size(): number {
    return new Set(this.#options.discovery.current().map(this.groupOf)).size;
  }

  /** Whether the agent answered the last query. */
  readonly answers = ({ url }: Pick<AgentAddress, 'url'>): boolean => this.#answering.has(url);

  /** The groups with a known fingerprint; the same map until something changes. */
  members(): ReadonlyMap<string, Members> {
    const agents = this.#options.discovery.current();
    if (this.#members?.of !== agents) this.#members = { of: agents, byFingerprint: this.#membersOf(agents) };
    return this.#members.byFingerprint;
  }

  /** Reports by node; the same map until a change. Two agents that claim one node do not count. */
  reports(): ReadonlyMap<string, NodeReport> {
    const agents = this.#options.discovery.current();
    if (this.#reports?.of !== agents) this.#reports = { of: agents, byNode: this.#reportsOf(agents) };
    return this.#reports.byNode;
  }

  /** Credential problems by node, of agents that report some. */
  problems(): ReadonlyMap<string, readonly SourceProblem[]> {
    return new Map(
      this.#options.discovery.current().flatMap(({ url, node }) => {
        const info = this.#known.get(url)?.info;
        const name = node ?? info?.node;
        return name === undefined || info?.problems === undefined ? [] : [[name, info.problems] as const];
      }),
    );
  }

  /** Resolves when all agents known now were queried once, at the latest with `signal`. */
  async ready(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) await unlessAborted(this.#nextRound(), signal).catch(() => undefined);
  }

  close(): void {
    this.#cancelTick();
    this.#stopping.abort();
  }

  #tick(): void {
    this.#startRound();
    this.#cancelTick = this.#options.clock.timer(tickMs, () => this.#tick());
  }

  #startRound(): void {
    if (this.#round === undefined && !this.#stopping.signal.aborted) void this.#nextRound();
  }

  /** One round at a time; a call during a round waits for the next one. */
  #nextRound(): Promise<void> {
    const next = (this.#round ?? Promise.resolve())
      .then(() => this.#refresh())
      .finally(() => {
        if (this.#round === next) this.#round = undefined;
      });
    this.#round = next;
    return next;
  }

  async #refresh(): Promise<void> {
    const { discovery, clock, isFailing, onRound, refreshMs = defaultRefreshMs } = this.#options;
    const agents = discovery.current();
    const urls = new Set(agents.map((agent) => agent.url));
    for (const url of this.#known.keys()) if (!urls.has(url)) this.#known.delete(url);
    for (const url of this.#answering) if (!urls.has(url)) this.#answering.delete(url);
    const now = clock.monotonic();
    const isDue = ({ url }: AgentAddress): boolean =>
      (this.#known.get(url)?.until ?? 0) <= now || isFailing?.(url) === true;
    const due = agents.filter(isDue);
    const lifetimeMs = Math.max(refreshMs, agents.length * perAgentMs);
    await concurrently(due, concurrency, (agent) => this.#ask(agent, lifetimeMs));
    if (!this.#stopping.signal.aborted) onRound?.();
  }

  async #ask({ url }: AgentAddress, lifetimeMs: number): Promise<void> {
    const { connection, clock, log } = this.#options;
    try {
      const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(timeoutMs)]);
      const info = readAgentInfo(await connection.json(url, '/v1/info', { signal, maxBytes: maxInfoBytes }));
      if (info === undefined) throw new AgentError('bad-answer', url, 'the agent gives no fingerprint');
      this.#answering.add(url);
      const before = this.#known.get(url)?.info;
      this.#known.set(url, { info, until: clock.monotonic() + lifetimeMs });
      this.#members = undefined;
      if (JSON.stringify([before?.node, before?.report]) !== JSON.stringify([info.node, info.report]))
        this.#reports = undefined;
    } catch (error) {
      this.#answering.delete(url);
      // The last fingerprint stands: an agent that cannot be reached has not changed its node's credentials.
      if (!this.#stopping.signal.aborted)
        log.debug({ agent: url, err: error }, 'an agent gave no information');
    }
  }

  #reportsOf(agents: readonly AgentAddress[]): ReadonlyMap<string, NodeReport> {
    const known = agents.flatMap(({ url, node }) => {
      const info = this.#known.get(url)?.info;
      const name = node ?? info?.node;
      return name === undefined || info?.report === undefined ? [] : [{ name, report: info.report }];
    });
    const byNode = Map.groupBy(known, ({ name }) => name);
    return new Map(
      [...byNode].flatMap(([name, [first, ...others]]) =>
        first === undefined || others.length > 0 ? [] : [[name, first.report] as const],
      ),
    );
  }

  #membersOf(agents: readonly AgentAddress[]): ReadonlyMap<string, Members> {
    const byFingerprint = Map.groupBy(agents, this.groupOf);
    byFingerprint.delete(unknownGroup);
    return new Map(
      [...byFingerprint].map(([fingerprint, own]) => {
        const nodes = distinct(own.map(({ url, node }) => node ?? this.#known.get(url)?.info.node));
        const architectures = distinct(own.map(({ url }) => this.#known.get(url)?.info.architecture));
        return [fingerprint, { fingerprint, agents: own, nodes, architectures }];
      }),
    );
  }
}

function distinct(texts: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(texts.filter((text) => text !== undefined))].sort();
}
