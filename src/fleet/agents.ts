/**
 * The table of agents: what each one says of itself at `/v1/info`, if it answers, and how long it gets no
 * request after failures.
 *
 * Agents on nodes with the same credential sources give the same fingerprint and form a credential group: if
 * one group has no access to an image, another may have; another agent of the same group never has. Agents
 * without a known fingerprint form one group, which is a passing state: a group for each would send a denied
 * lookup to every agent of a cluster that just started.
 */
import { backOffMs } from '../async/back-off.ts';
import type { Clock } from '../async/clock.ts';
import { concurrently } from '../async/concurrently.ts';
import { limited, unlessAborted } from '../async/wait.ts';
import type { SourceProblem } from '../credentials/credential.ts';
import type { NodeReport } from '../nodes/node-report.ts';
import type { Log } from '../telemetry/log.ts';
import { AgentError, type AgentConnection } from './connection.ts';
import type { AgentAddress, Discovery } from './discovery.ts';
import { readAgentInfo, type AgentInfo } from './info.ts';
import { Ranking } from './rank.ts';

interface Agent {
  info?: AgentInfo;
  /** Monotonic time at which `/v1/info` is requested again. */
  dueAt: number;
  /** Whether it answered the last request. */
  answers: boolean;
  /** Failed lookups in a row. */
  failures: number;
  backedOffUntil: number;
}

export type AgentState = 'ready' | 'silent' | 'backedOff';

export interface CredentialGroup {
  readonly fingerprint: string;
  /** Short form of the fingerprint, for people. */
  readonly name: string;
  /** Nodes with known names, sorted. */
  readonly nodes: readonly string[];
  readonly architectures: readonly string[];
}

/** What follows from the table, until it changes. */
interface View {
  readonly ranking: Ranking;
  /** The groups with a known fingerprint. */
  readonly groups: readonly CredentialGroup[];
  /** By node, as `problems`. Two agents that claim one node do not count. */
  readonly reports: ReadonlyMap<string, NodeReport>;
  readonly problems: ReadonlyMap<string, readonly SourceProblem[]>;
}

export interface AgentsOptions {
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
}

export const unknownGroup = 'unknown';
/** Enough of a fingerprint to tell groups apart, and to find one in the agents' answers. */
const nameLength = 12;

const backOff = { firstMs: 1000, mostMs: 30_000 };
/** Agents restart within seconds, first ones start within twenty. Unplaced pods are worse than a wait. */
const patienceMs = 30_000;
/** How often agents are asked that did not answer, or whose information is old. */
const tickMs = 5000;
/** Credentials of nodes change with rollouts of machines and files: minutes are soon enough. */
const infoLifetimeMs = 60_000;
/** In a large cluster the requests are spread out: this much time for each agent, ten requests a second. */
const perAgentMs = 100;
const concurrency = 16;
const infoTimeoutMs = 2000;
const maxInfoBytes = 16 * 1024;

export class Agents {
  readonly #options: AgentsOptions;
  readonly #stopping = new AbortController();
  readonly #byUrl = new Map<string, Agent>();
  #view: View | undefined;
  #round: Promise<void> | undefined;
  #cancelTick = (): void => undefined;
  /** Monotonic time at which an agent answered last. */
  #answeredAt: number;
  #isAvailable = true;

  constructor(options: AgentsOptions) {
    this.#options = options;
    this.#answeredAt = options.clock.monotonic();
    options.discovery.onChange(() => this.#discover());
    this.#discover();
    this.#tick();
  }

  /** False if no agent has answered for some time: no pod must wait for one. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  get view(): View {
    const addresses = this.#options.discovery.current();
    return (this.#view ??= viewOf(addresses, (url) => this.#byUrl.get(url)?.info));
  }

  groupOf(url: string): string {
    return this.#byUrl.get(url)?.info?.fingerprint ?? unknownGroup;
  }

  /** All agents by group, in the order of lookups in this repository; the owner's group comes first. */
  byGroup(repository: string): ReadonlyMap<string, readonly AgentAddress[]> {
    return Map.groupBy(this.view.ranking.order(repository), ({ url }) => this.groupOf(url));
  }

  stateOf(url: string): AgentState {
    if (this.backedOffMs(url) > 0) return 'backedOff';
    return this.#byUrl.get(url)?.answers === true ? 'ready' : 'silent';
  }

  /** Milliseconds until the next request to an agent that failed; 0 for any other. */
  backedOffMs(url: string): number {
    return Math.max(0, (this.#byUrl.get(url)?.backedOffUntil ?? 0) - this.#options.clock.monotonic());
  }

  /** Numbers of agents by state, and of groups. */
  counts(): Record<AgentState | 'groups', number> {
    const urls = [...this.#byUrl.keys()];
    const groups = new Set(urls.map((url) => this.groupOf(url))).size;
    const found = { ready: 0, silent: 0, backedOff: 0, groups };
    for (const url of urls) found[this.stateOf(url)] += 1;
    return found;
  }

  /** The agent answered a lookup. */
  answered(url: string): void {
    const agent = this.#byUrl.get(url);
    if (agent)
      Object.assign(agent, { answers: true, failures: 0, backedOffUntil: 0 } satisfies Partial<Agent>);
  }

  /** The agent did not answer a lookup, although it had the time. */
  failed(url: string): void {
    const agent = this.#byUrl.get(url);
    // Lookups that were under way together fail together; they are one failure.
    if (!agent || this.stateOf(url) === 'backedOff') return;
    agent.answers = false;
    agent.failures += 1;
    agent.backedOffUntil = this.#options.clock.monotonic() + backOffMs(backOff, agent.failures);
  }

  /** Resolves when all agents known now were asked for `/v1/info`, at the latest with `signal`. */
  async ready(signal: AbortSignal): Promise<void> {
    // The round that runs may lack new agents.
    const asked = Promise.resolve(this.#round).then(() => this.#askDue());
    await unlessAborted(asked, signal).catch(() => undefined);
  }

  close(): void {
    this.#cancelTick();
    this.#stopping.abort();
  }

  #discover(): void {
    const urls = new Set(this.#options.discovery.current().map(({ url }) => url));
    for (const url of this.#byUrl.keys()) if (!urls.has(url)) this.#byUrl.delete(url);
    for (const url of urls)
      if (!this.#byUrl.has(url))
        this.#byUrl.set(url, { dueAt: 0, answers: false, failures: 0, backedOffUntil: 0 });
    this.#view = undefined;
    void this.#askDue();
  }

  #tick(): void {
    this.#updateAvailability();
    void this.#askDue();
    this.#cancelTick = this.#options.clock.timer(tickMs, () => this.#tick());
  }

  /** One round at a time. */
  #askDue(): Promise<void> {
    const isDue = ({ answers, dueAt }: Agent) => !answers || dueAt <= this.#options.clock.monotonic();
    const due = [...this.#byUrl].filter(([, agent]) => isDue(agent));
    return (this.#round ??= concurrently(due, concurrency, ([url, agent]) => this.#ask(url, agent)).then(
      () => {
        this.#round = undefined;
        this.#updateAvailability();
      },
    ));
  }

  async #ask(url: string, agent: Agent): Promise<void> {
    const { connection, clock, log } = this.#options;
    const call = (signal: AbortSignal) =>
      connection.json(url, '/v1/info', { signal, maxBytes: maxInfoBytes });
    try {
      const info = readAgentInfo(await limited(infoTimeoutMs, this.#stopping.signal, call, clock.sleep));
      if (info === undefined) throw new AgentError('bad-answer', url, 'the agent gives no fingerprint');
      if (JSON.stringify(info) !== JSON.stringify(agent.info)) this.#view = undefined;
      agent.info = info;
      agent.answers = true;
      agent.dueAt = clock.monotonic() + Math.max(infoLifetimeMs, this.#byUrl.size * perAgentMs);
    } catch (error) {
      // Its information stands: an agent that cannot be reached has not changed its node's credentials.
      agent.answers = false;
      if (!this.#stopping.signal.aborted)
        log.debug({ agent: url, err: error }, 'an agent gave no information');
    }
  }

  #updateAvailability(): void {
    const { clock, log } = this.#options;
    const agents = [...this.#byUrl.values()].filter(({ answers }) => answers).length;
    if (agents > 0) {
      this.#answeredAt = clock.monotonic();
      if (!this.#isAvailable) log.info({ agents }, 'agents answer again: unknown images gate pods');
      this.#isAvailable = true;
    } else if (this.#isAvailable && clock.monotonic() - this.#answeredAt >= patienceMs) {
      this.#isAvailable = false;
      log.warn(
        { agents: this.#byUrl.size, seconds: patienceMs / 1000 },
        'no agent answers: images that are not in memory are unknown, and gate no pods; see archwright status',
      );
    }
  }
}

function viewOf(addresses: readonly AgentAddress[], infoOf: (url: string) => AgentInfo | undefined): View {
  const agents = addresses.flatMap(({ url, node }) => {
    const info = infoOf(url);
    return info ? [{ ...info, node: node ?? info.node }] : [];
  });
  const groups = [...Map.groupBy(agents, ({ fingerprint }) => fingerprint)].map(([fingerprint, own]) => ({
    fingerprint,
    name: fingerprint.slice(0, nameLength),
    nodes: distinct(own.map(({ node }) => node)),
    architectures: distinct(own.map(({ architecture }) => architecture)),
  }));
  const byNode = [...Map.groupBy(agents, ({ node }) => node)].flatMap(([node, [agent, ...others]]) =>
    node === undefined || others.length > 0
      ? []
      : [{ node, report: agent?.report, problems: agent?.problems }],
  );
  return {
    ranking: new Ranking(addresses),
    groups,
    reports: new Map(byNode.flatMap(({ node, report }) => (report ? [[node, report]] : []))),
    problems: new Map(byNode.flatMap(({ node, problems }) => (problems ? [[node, problems]] : []))),
  };
}

function distinct(texts: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(texts.filter((text) => text !== undefined))].sort();
}
