/** A fleet over scripted agents. */
import type { Test } from 'tap';
import { Readable } from 'node:stream';
import type { AgentAddress, Discovery } from '../../src/fleet/discovery.ts';
import { createFleet, type FleetOptions } from '../../src/fleet/fleet.ts';
import type { FactsErrorCode, ImageRequest } from '../../src/images/facts/facts.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { readableLog, seriesOf, silentLog } from '../support/captured.ts';
import { factsOf, failureOf, requestFor } from '../support/facts.ts';
import {
  connect,
  createPki,
  startScripted,
  type FactsRequest,
  type Pki,
  type Script,
  type ScriptedAgent,
} from './support.ts';
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

/** A fleet of these agents, which is closed with the test. */
export async function startFleet(
  t: Test,
  pki: Pki,
  agents: Discovery | readonly AgentAddress[],
  options: Partial<FleetOptions> = {},
) {
  const metrics = createMetrics();
  const fleet = createFleet({
    discovery: 'current' in agents ? agents : listOf(agents),
    connection: options.connection ?? (await connect(t, pki)),
    clock: createFakeClock(),
    log: silentLog,
    metrics,
    ...options,
  });
  t.teardown(() => fleet.close());
  return {
    fleet,
    /** The value of a metric's sample, such as `archwright_fleet_credential_groups`. */
    metric: async (sample: string): Promise<number> => Number(await seriesOf(metrics, sample)),
  };
}

/** A discovery of these agents. */
function listOf(agents: readonly AgentAddress[]): Discovery {
  return { current: () => agents, ready: () => Promise.resolve(), onChange: () => undefined };
}

/** URLs of the agents that a fleet asks for these images, in their order. All agents answer, in this process. */
export async function ownersOf(images: readonly string[], agents: readonly AgentAddress[]) {
  const asked: string[] = [];
  const fleet = createFleet({
    discovery: listOf(agents),
    connection: {
      json: (url, path, { body }) => {
        if (path === '/v1/info') return Promise.resolve({ credentialFingerprint: 'same' });
        asked.push(url);
        return Promise.resolve(factsOf((body as FactsRequest).images[0]?.image ?? ''));
      },
      lines: () => Readable.from([]),
      close: () => Promise.resolve(),
    },
    clock: createFakeClock(),
    log: silentLog,
    metrics: createMetrics(),
  });
  await fleet.grouped(neverAborted);
  for (const one of images) await fleet.lookup(requestFor(one), { signal: neverAborted });
  fleet.close();
  return asked;
}

/** Agents in the order in which a lookup asks them: the owner, its successor if it left, and so on. */
export async function orderOf<Agent extends AgentAddress>(one: string, agents: readonly Agent[]) {
  const order: Agent[] = [];
  for (let rest = agents; rest.length > 0; rest = rest.filter((agent) => !order.includes(agent))) {
    const [owner] = await ownersOf([one], rest);
    order.push(...rest.filter(({ url }) => url === owner));
  }
  return order;
}

/** A fleet with one agent per script, in the order in which a lookup of `image` tries them. */
export async function setup(t: Test, scripts: readonly Script[], options: SetupOptions = {}) {
  const pki = await createPki(t);
  const started = await Promise.all(scripts.map(() => startScripted(t, pki)));
  const agents = await orderOf(image, started);
  for (const [index, agent] of agents.entries()) Object.assign(agent.script, scripts[index]);
  const { log, lines } = readableLog();
  const { silenceMs = 20_000, ...more } = options;
  const connection = await connect(t, pki, { limits: { dialMs: 20_000, headerMs: silenceMs } });
  const { fleet, metric } = await startFleet(t, pki, agents, { connection, log, ...more });
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
    metric,
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
