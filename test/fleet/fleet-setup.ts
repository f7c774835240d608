/** A fleet over scripted agents. */
import type { Test } from 'tap';
import { staticDiscovery, type AgentAddress } from '../../src/fleet/discovery/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import { rank } from '../../src/fleet/groups/rendezvous.ts';
import type { FactsErrorCode, ImageRequest } from '../../src/images/facts/facts.ts';
import { systemClock, type Clock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { seriesOf } from '../support/captured.ts';
import {
  connect,
  createPki,
  failureOf,
  questionOf,
  readableLog,
  startScripted,
  type Script,
  type ScriptedAgent,
} from './support.ts';

export const image = 'registry.example/team/app:1';
export const never = new AbortController().signal;

export interface SetupOptions {
  readonly questionTimeoutMs?: number;
  readonly hedgeMs?: number;
  readonly clock?: Clock;
}

/** A fleet over one agent for each script; the scripts are given out in the order in which agents are asked about `image`. */
export async function setup(t: Test, scripts: readonly Script[], options: SetupOptions = {}) {
  const pki = await createPki(t);
  const started = await Promise.all(scripts.map(() => startScripted(t, pki)));
  const order = rank(
    questionOf(image).reference.repository,
    started.map(({ url }): AgentAddress => ({ url })),
  );
  const agents = order.map(({ url }, index) => {
    const agent = started.find((candidate) => candidate.url === url);
    if (!agent) throw new Error('no such agent');
    Object.assign(agent.script, scripts[index]);
    return agent;
  });
  const { log, lines } = readableLog();
  const metrics = createMetrics();
  const connection = await connect(t, pki, { dialTimeoutMs: 1000 });
  const hedgeMs = options.hedgeMs ?? 10_000;
  const fleet = createFleet({
    discovery: staticDiscovery(agents.map(({ url }) => url)),
    connection,
    clock: options.clock ?? systemClock,
    log,
    metrics,
    responseTime: { floorMs: hedgeMs, capMs: hedgeMs },
    ...(options.questionTimeoutMs !== undefined && { lookupTimeoutMs: options.questionTimeoutMs }),
  });
  t.teardown(() => fleet.close());
  // Credential groups are known once this is through.
  for await (const facts of fleet.shared(never)) t.comment(facts.image);
  return {
    fleet,
    /** In the order in which they are asked about `image`. */
    agents,
    lines,
    /** Asks about `image`. */
    lookup: (request: Partial<ImageRequest> = {}, signal = never) =>
      fleet.lookup({ ...questionOf(image), ...request }, { signal }),
    /** How often each agent was asked. */
    asked: () => askedOf(agents),
    /** The value of a metric's sample, such as `archwright_fleet_hedges_total`. */
    metric: async (sample: string): Promise<number> => Number(await seriesOf(metrics, sample)),
  };
}

export type Answer = NonNullable<Script['facts']>;

/** An agent that answers with this error. */
export const denied =
  (code: FactsErrorCode): Answer =>
  (asked) => ({
    results: asked.images.map((one) => failureOf(one.image, code)),
  });
/** Loses the connection within the answer. */
export const cut: Answer = (_, response) => {
  response.writeHead(200, { 'content-length': 100 });
  response.write('{"results":', () => response.destroy());
};
/** Never answers. */
export const silent: Answer = () => undefined;
/** How often each was asked. */
export const askedOf = (agents: readonly ScriptedAgent[]): number[] =>
  agents.map((agent) => agent.asked.length);
