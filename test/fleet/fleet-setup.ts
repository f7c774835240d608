/** A fleet over scripted agents. */
import type { Test } from 'tap';
import { staticDiscovery, type AgentAddress } from '../../src/fleet/discovery.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import { Ranking } from '../../src/fleet/rank.ts';
import type { FactsErrorCode, ImageRequest } from '../../src/images/facts/facts.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { seriesOf, readableLog } from '../support/captured.ts';
import { failureOf, requestFor } from '../support/facts.ts';
import { connect, createPki, startScripted, type Script, type ScriptedAgent } from './support.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';

export const image = 'registry.example/team/app:1';

export interface SetupOptions {
  readonly lookupTimeoutMs?: number;
  /** Default: one on which no time passes. */
  readonly clock?: Clock;
  /** Of the connection. */
  readonly silenceMs?: number;
}

/** A fleet with one agent per script, in the order in which a lookup of `image` tries them. */
export async function setup(t: Test, scripts: readonly Script[], options: SetupOptions = {}) {
  const pki = await createPki(t);
  const started = await Promise.all(scripts.map(() => startScripted(t, pki)));
  const ranking = new Ranking(started.map(({ url }): AgentAddress => ({ url })));
  const order = ranking.order(requestFor(image).reference.repository);
  const agents = order.map(({ url }, index) => {
    const agent = started.find((candidate) => candidate.url === url);
    if (!agent) throw new Error('no such agent');
    Object.assign(agent.script, scripts[index]);
    return agent;
  });
  const { log, lines } = readableLog();
  const metrics = createMetrics();
  const { clock = createFakeClock(), silenceMs = 20_000, ...more } = options;
  const connection = await connect(t, pki, { dialTimeoutMs: 20_000, silenceMs });
  const fleet = createFleet({
    discovery: staticDiscovery(agents.map(({ url }) => url)),
    connection,
    clock,
    log,
    metrics,
    ...more,
  });
  t.teardown(() => fleet.close());
  // After the warm-up the credential groups are known.
  await fleet.readShared(({ image }) => t.comment(image), neverAborted);
  return {
    fleet,
    /** In the order in which a lookup of `image` tries them. */
    agents,
    lines,
    /** Looks up `image`. */
    lookup: (request: Partial<ImageRequest> = {}, signal = neverAborted) =>
      fleet.lookup({ ...requestFor(image), ...request }, { signal }),
    /** The number of requests at each agent. */
    requestCounts: () => requestCountsOf(agents),
    /** The value of a metric's sample, such as `archwright_fleet_groups`. */
    metric: async (sample: string): Promise<number> => Number(await seriesOf(metrics, sample)),
  };
}

export type Answer = NonNullable<Script['facts']>;

/** An agent that answers with this error. */
export const denied =
  (code: FactsErrorCode): Answer =>
  (body) => ({
    results: body.images.map((one) => failureOf(one.image, code)),
  });
/** Loses the connection within the answer. */
export const cut: Answer = (_, response) => {
  response.writeHead(200, { 'content-length': 100 });
  response.write('{"results":', () => response.destroy());
};
/** Sends the headers of its response only, like an agent that waits for a slow registry. */
export const responding: Answer = (_, response) =>
  response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();

/** Never answers. */
export const silent: Answer = () => undefined;
/** The number of requests at each agent. */
export const requestCountsOf = (agents: readonly ScriptedAgent[]): number[] =>
  agents.map((agent) => agent.requests.length);
