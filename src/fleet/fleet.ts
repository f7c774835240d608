/**
 * The agents as one source of image facts, for webhook and controller.
 *
 * A lookup goes to the agent that owns the image's repository (`discovery.ts`), so that one agent queries the
 * registry and remembers, however many webhooks there are. Then others may get it (`lookup.ts`).
 */
import { setMaxListeners } from 'node:events';
import { FairSemaphores } from '../async/fair-semaphore.ts';
import { failedFacts, type ImageFacts, type ImageFactsSource, isOfPod } from '../images/facts/facts.ts';
import type { NodeClasses } from '../nodes/node-classes.ts';
import { resolvesShortNames } from '../nodes/node-report.ts';
import { counts, gauge, type Metrics, type MetricSpec } from '../telemetry/metrics.ts';
import { Agents, type AgentsOptions } from './agents.ts';
import { attempts, attemptOutcomes, limitsPerAgent, lookUp, type PullSecretNodes } from './lookup.ts';
import { createPullable } from './pullable.ts';
import { concurrently } from '../async/concurrently.ts';
import { parseJson } from '../http/json.ts';
import { InvalidFacts, readFacts } from '../images/facts/wire.ts';
import { validReference } from '../images/references/reference.ts';
import { messageOf } from '../names/printable.ts';
import type { Log } from '../telemetry/log.ts';
import { agentPaths, type AgentConnection } from './connection.ts';
import { Ranking, type AgentAddress } from './discovery.ts';

const specs = {
  attempts,
  agents: gauge(
    'archwright_fleet_agents',
    'Agents. `silent`: it did not answer its last request, or has had none.',
    { state: ['ready', 'silent'] },
  ),
  available: gauge(
    'archwright_fleet_available',
    'Set to 0 if no agent has answered for 30 s. Pods with unknown images are then not gated.',
  ),
  groups: gauge('archwright_fleet_credential_groups', 'Groups of agents with equal credential sources.'),
  dockerHubLimit: gauge(
    'archwright_fleet_docker_hub_limit_requests',
    'Requests that Docker Hub allows the agent that has the smallest part left. 0: no agent knows.',
  ),
  dockerHubRemaining: gauge('archwright_fleet_docker_hub_limit_remaining_requests', 'What is left of them.'),
} satisfies Record<string, MetricSpec>;

/** Every metric of this folder, for the documentation. */
export const fleetMetrics: readonly MetricSpec[] = Object.values(specs);

export type Fleet = ReturnType<typeof createFleet>;

/** The caller closes `connection`. */
export interface FleetOptions extends Omit<AgentsOptions, 'closing'> {
  readonly metrics: Metrics;
  /** Nodes that may receive pull secrets. Default: all. */
  readonly pullSecretNodes?: PullSecretNodes | undefined;
}

/** All agents together: a few hundred bytes for 100,000 images, twice, as nodes come and go. */
const maxBytes = 128 * 1024 * 1024;
/** Streams that are read at the same time. */
const concurrency = 8;

/** Makes a fleet; it queries the agents for their credential groups until it is closed. */
export function createFleet(options: FleetOptions) {
  const { discovery, connection, clock, log, pullSecretNodes } = options;
  const ending = new AbortController();
  const { signal: closing } = ending;
  setMaxListeners(0, closing);
  const agents = new Agents({ discovery, connection, clock, log, closing });
  showAgents(options.metrics, agents);
  const attempt = counts(options.metrics, attempts, 'outcome', attemptOutcomes);
  const places = new FairSemaphores(limitsPerAgent);
  const context = { agents, connection, places, attempt, pullSecretNodes, clock, log };
  let classes: (() => NodeClasses | undefined) | undefined;
  /** What the kubelet says of its runtime goes first: one wrong agent must not change names for all pods. */
  const mayResolveShortNames = (): boolean => {
    const groups = [...(classes?.()?.values() ?? [])].flat();
    const isKnown = groups.some(({ class: { runtime } }) => runtime);
    return !isKnown || groups.some(({ class: own }) => resolvesShortNames(own));
  };
  const lookup: ImageFactsSource['lookup'] = async (request, { signal }) => {
    const groups = agents.byGroup(request.reference.repository).values();
    const answer = await lookUp(context, request, groups, signal);
    return 'code' in answer ? failedFacts(request.image, answer, clock.now()) : answer;
  };

  return {
    lookup,
    pullable: createPullable(context, closing),
    /** False if no agent has answered for some time, so that no pod should wait for one. */
    isAvailable: () => agents.isAvailable,
    /** What agents report of their nodes, by node; the same map until something changes. */
    nodeReports: () => agents.view.reports,
    /** Whether the runtime of a node finds the registries of short names by itself. */
    resolvesShortNames: () => agents.view.resolvesShortNames && mayResolveShortNames(),
    /** @param current the classes of the cluster's nodes. Without them, reports of agents count alone. */
    useNodes: (current: typeof classes) => {
      classes = current;
    },
    /** Credentials that nodes do not use, and why, by node; nodes without a problem are left out. */
    credentialProblems: () => agents.view.problems,
    /** Programs that nodes could not execute, by node; nodes that do not trace them are left out. */
    execErrors: () => agents.view.execErrors,
    /** Resolves when each agent was queried for its credential group, at the latest with `signal`. */
    grouped: async (signal: AbortSignal) => {
      await discovery.ready(signal);
      await agents.ready(signal);
    },
    /** Passes on the shared facts of all agents, and learns the groups. Ends after them, or with `signal`. */
    readShared: async (onFacts: (facts: ImageFacts) => void, signal: AbortSignal) => {
      await discovery.ready(signal);
      await streamSharedFacts(discovery.current(), context, onFacts, signal);
      await agents.ready(signal);
    },
    close: () => ending.abort(),
  };
}

export function showAgents(
  metrics: Metrics,
  agents: Pick<Agents, 'counts' | 'dockerHubLimit' | 'isAvailable'>,
): void {
  metrics.beforeScrape(() => {
    const { ready, silent, groups } = agents.counts();
    metrics.gauge(specs.agents, { state: 'ready' }).set(ready);
    metrics.gauge(specs.agents, { state: 'silent' }).set(silent);
    metrics.gauge(specs.available).set(agents.isAvailable ? 1 : 0);
    metrics.gauge(specs.groups).set(groups);
    const { limit = 0, remaining = 0 } = agents.dockerHubLimit() ?? {};
    metrics.gauge(specs.dockerHubLimit).set(limit);
    metrics.gauge(specs.dockerHubRemaining).set(remaining);
  });
}

/**
 * The shared facts of all agents, for a webhook that starts. An agent is believed only about the repositories
 * that it owns: a compromised node cannot answer for the images of others. Passes facts on as they come; logs
 * failing agents and rejected lines. Ends when `signal` aborts.
 */
async function streamSharedFacts(
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
      for await (const line of connection.lines(agent.url, agentPaths.facts, { signal, maxBytes: budget })) {
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
