/**
 * The table of agents: what each one says of itself at `/v1/info`, and if it answers. An agent that fails gets
 * no lookups until it answers there again.
 *
 * Agents on nodes with the same credential sources give the same fingerprint and form a credential group: if
 * one group has no access to an image, another may have; another agent of the same group never has. Agents
 * without a known fingerprint form one group, which is a passing state: a group for each would send a denied
 * lookup to every agent of a cluster that just started.
 */
import type { Clock } from '../async/clock.ts';
import { concurrently } from '../async/concurrently.ts';
import { limited, unlessAborted } from '../async/wait.ts';
import type { SourceProblem } from '../credentials/credential.ts';
import { readProblems } from '../credentials/problems.ts';
import { asObject, asText } from '../http/json.ts';
import { isArchitecture } from '../names/architecture.ts';
import { messageOf } from '../names/printable.ts';
import { readExecReport, type ExecReport } from '../nodes/exec-report.ts';
import { readNodeReport, resolvesShortNames, type NodeReport } from '../nodes/node-report.ts';
import type { RequestLimit } from '../registry/net/docker-hub-limit.ts';
import type { Log } from '../telemetry/log.ts';
import { AgentError, agentPaths, type AgentConnection } from './connection.ts';
import { Ranking, type AgentAddress, type Discovery } from './discovery.ts';

interface Agent {
  /** The node that discovery names. */
  readonly node: string | undefined;
  info?: Omit<NonNullable<ReturnType<typeof readAgentInfo>>, 'dockerHub'>;
  /** Only while it answers. */
  dockerHub?: RequestLimit | undefined;
  /** Monotonic time at which `/v1/info` is requested again. */
  dueAt: number;
  /** Why it did not answer its last request. */
  problem?: string | undefined;
}

export interface CredentialGroup {
  readonly fingerprint: string;
  /** Nodes with known names, sorted. */
  readonly nodes: readonly string[];
  readonly architectures: readonly string[];
}

export interface AgentsOptions {
  readonly discovery: Discovery;
  readonly connection: AgentConnection;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends everything when it aborts. */
  readonly closing: AbortSignal;
}

const unknownGroup = 'unknown';

/** Agents restart within seconds, first ones start within twenty. Unplaced pods are worse than a wait. */
const patienceMs = 30_000;
/** How often `/v1/info` is requested of agents that did not answer, or whose information is old. */
export const tickMs = 5000;
/** Credentials of nodes change with rollouts of machines and files: minutes are soon enough. */
const infoLifetimeMs = 60_000;
/** In a large cluster the requests are spread out: this much time for each agent, ten requests a second. */
const perAgentMs = 100;
const concurrency = 16;
const infoTimeoutMs = 2000;
const maxInfoBytes = 32 * 1024;

export class Agents {
  readonly #options: AgentsOptions;
  readonly #byUrl = new Map<string, Agent>();
  #view: ReturnType<typeof viewOf> | undefined;
  /** Ends with all requests for `/v1/info` that were sent until now. */
  #rounds: Promise<unknown> = Promise.resolve();
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

  get view() {
    return (this.#view ??= viewOf(this.#options.discovery.current(), this.#byUrl));
  }

  /** All agents by fingerprint, in the order of lookups in this repository; the owner's group comes first. */
  byGroup(repository: string): ReadonlyMap<string, readonly AgentAddress[]> {
    const groupOf = ({ url }: AgentAddress) => this.#byUrl.get(url)?.info?.fingerprint ?? unknownGroup;
    return Map.groupBy(this.view.ranking.order(repository), groupOf);
  }

  /** Why an agent gets no lookups. */
  problemOf(url: string): string | undefined {
    return this.#byUrl.get(url)?.problem;
  }

  counts() {
    const ready = [...this.#byUrl.values()].filter(({ info, problem }) => info && !problem).length;
    return { ready, silent: this.#byUrl.size - ready, groups: this.view.groups.length };
  }

  /** What Docker Hub allows the node that has the smallest part left. */
  dockerHubLimit(): RequestLimit | undefined {
    const known = [...this.#byUrl.values()].flatMap(({ dockerHub }) => dockerHub ?? []);
    const share = ({ limit, remaining }: RequestLimit): number => remaining / Math.max(1, limit);
    return known.toSorted((a, b) => share(a) - share(b))[0];
  }

  /** The agent did not answer, although it had the time. */
  failed(url: string, problem: string): void {
    const agent = this.#byUrl.get(url);
    if (agent) fail(agent, problem);
  }

  /** Resolves after the requests for `/v1/info` that have begun, at the latest with `signal`. */
  async ready(signal: AbortSignal): Promise<void> {
    await unlessAborted(this.#rounds, signal).catch(() => undefined);
  }

  #discover(): void {
    const nodes = new Map(this.#options.discovery.current().map(({ url, node }) => [url, node]));
    // An address can move to another node, of which the old answer says nothing.
    for (const [url, { node }] of this.#byUrl)
      if (!nodes.has(url) || nodes.get(url) !== node) this.#byUrl.delete(url);
    for (const [url, node] of nodes) if (!this.#byUrl.has(url)) this.#byUrl.set(url, { node, dueAt: 0 });
    this.#view = undefined;
    this.#updateDue();
  }

  #tick(): void {
    const { clock, closing } = this.#options;
    if (closing.aborted) return;
    this.#updateAvailability();
    this.#updateDue();
    clock.timer(tickMs, () => this.#tick());
  }

  /** New agents do not wait for a round whose agents are silent. */
  #updateDue(): void {
    const now = this.#options.clock.monotonic();
    const due = [...this.#byUrl].filter(([, { dueAt }]) => dueAt <= now);
    for (const [, agent] of due) agent.dueAt = Number.POSITIVE_INFINITY;
    const round = concurrently(due, concurrency, ([url, agent]) => this.#update(url, agent));
    const ended = round.then(() => this.#updateAvailability());
    this.#rounds = this.#rounds.then(() => ended);
  }

  async #update(url: string, agent: Agent): Promise<void> {
    const { connection, clock, log, closing } = this.#options;
    const call = (signal: AbortSignal) =>
      connection.json(url, agentPaths.info, { signal, maxBytes: maxInfoBytes });
    try {
      const read = readAgentInfo(await limited(infoTimeoutMs, closing, call, clock.sleep));
      if (read === undefined) throw new AgentError('bad-answer', 'the agent gives no fingerprint');
      // It changes with every request, and the view does not depend on it.
      const { dockerHub, ...info } = read;
      agent.dockerHub = dockerHub;
      if (JSON.stringify(info) !== JSON.stringify(agent.info)) this.#view = undefined;
      agent.info = info;
      agent.problem = undefined;
      agent.dueAt = clock.monotonic() + Math.max(infoLifetimeMs, this.#byUrl.size * perAgentMs);
    } catch (error) {
      // Its information stands: an agent that cannot be reached has not changed its node's credentials.
      const reason = messageOf(error);
      if (agent.problem === undefined && !closing.aborted)
        log.info({ agent: url, reason }, 'an agent does not answer');
      fail(agent, reason);
    }
  }

  #updateAvailability(): void {
    const { clock, log } = this.#options;
    const now = clock.monotonic();
    if (this.counts().ready > 0) this.#answeredAt = now;
    const isAvailable = now - this.#answeredAt < patienceMs;
    if (isAvailable === this.#isAvailable) return;
    this.#isAvailable = isAvailable;
    const found = { agents: this.#byUrl.size };
    const gone =
      'no agent answers: images that are not in memory are unknown, and gate no pods; see archwright status';
    if (isAvailable) log.info(found, 'agents answer again: unknown images gate pods');
    else log.warn(found, gone);
  }
}

/** It is asked again in the next round. */
function fail(agent: Agent, problem: string): void {
  Object.assign(agent, { problem, dueAt: 0, dockerHub: undefined } satisfies Partial<Agent>);
}

/** What follows from the table: the order of agents, groups with a known fingerprint, and claims by node. */
function viewOf(addresses: readonly AgentAddress[], byUrl: ReadonlyMap<string, Agent>) {
  const agents = addresses.flatMap(({ url, node }) => {
    const { info, node: asked } = byUrl.get(url) ?? {};
    return info && asked === node ? [{ ...info, node: node ?? info.node }] : [];
  });
  const groups: readonly CredentialGroup[] = [...Map.groupBy(agents, ({ fingerprint }) => fingerprint)].map(
    ([fingerprint, own]) => ({
      fingerprint,
      nodes: distinct(own.map(({ node }) => node)),
      architectures: distinct(own.map(({ architecture }) => architecture)),
    }),
  );
  const reports = new Map<string, NodeReport>();
  const problems = new Map<string, readonly SourceProblem[]>();
  const execErrors = new Map<string, ExecReport>();
  for (const [node, [agent, ...others]] of Map.groupBy(agents, (each) => each.node)) {
    // Two agents that claim one node do not count.
    if (node === undefined || others.length > 0) continue;
    if (agent?.report) reports.set(node, agent.report);
    if (agent?.problems.length) problems.set(node, agent.problems);
    if (agent?.execErrors) execErrors.set(node, agent.execErrors);
  }
  return {
    ranking: new Ranking(addresses),
    groups,
    reports,
    problems,
    execErrors,
    resolvesShortNames: agents.some(({ report }) => report && resolvesShortNames(report)),
  };
}

function distinct(texts: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(texts.filter((text) => text !== undefined))].sort();
}

/** Kubernetes validates node names as DNS subdomains, RFC 1123. */
const nodeName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/u;

/**
 * What an agent says of itself at `/v1/info`. Nothing of it is trusted. Later versions may send more.
 * @returns `undefined` without a usable fingerprint; a node name that no node can have is dropped
 */
export function readAgentInfo(value: unknown) {
  const answer = asObject(value) ?? {};
  const fingerprint = asText(answer['credentialFingerprint']) ?? '';
  if (fingerprint === '') return undefined;
  const node = asText(answer['nodeName']) ?? '';
  const architecture = asText(answer['architecture']) ?? '';
  return {
    /** Equal for agents whose nodes have the same credential sources. */
    fingerprint,
    /** Discovery may know better (`discovery.ts`). */
    node: nodeName.test(node) ? node : undefined,
    architecture: isArchitecture(architecture) ? architecture : undefined,
    report: readNodeReport(answer['node']),
    /** Credentials that its node does not use, and why. */
    problems: readProblems(answer['credentialProblems']),
    /** Absent: it does not trace programs. */
    execErrors: readExecReport(answer['execErrors']),
    dockerHub: readLimit(answer['dockerHub']),
  };
}

function readLimit(value: unknown): RequestLimit | undefined {
  const { limit, remaining } = asObject(value) ?? {};
  if (typeof limit !== 'number' || typeof remaining !== 'number') return undefined;
  const isPossible = Number.isSafeInteger(limit) && Number.isSafeInteger(remaining);
  return isPossible && remaining >= 0 && remaining <= limit ? { limit, remaining } : undefined;
}
