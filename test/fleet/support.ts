/** Scripted agents for tests (real servers with mutual TLS), connections to them, and fleets over them. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { Readable } from 'node:stream';
import { json } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { agentServerName } from '../../src/certificates/agent-names.ts';
import {
  createConnection,
  type AgentConnection,
  type ConnectionOptions,
} from '../../src/fleet/connection.ts';
import { openTlsFiles } from '../../src/serving/tls-files.ts';
import type { AgentAddress, Discovery } from '../../src/fleet/discovery.ts';
import { createFleet, type FleetOptions } from '../../src/fleet/fleet.ts';
import type { FactsErrorCode, ImageRequest } from '../../src/images/facts/facts.ts';
import type { Clock } from '../../src/async/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import type { NodeReport } from '../../src/nodes/node-report.ts';
import { tlsDirectory } from '../serving/support.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { factsOf, failureOf, requestFor } from '../support/facts.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { createCa, type IssueOptions, type TestCa } from '../support/certificates.ts';
import { listen } from '../support/listen.ts';
import { readableLog, seriesOf, silentLog } from '../support/captured.ts';

export interface Pki {
  readonly ca: TestCa;
  readonly serverDir: string;
  readonly clientDir: string;
  /** A directory with `tls.crt`, `tls.key` and `ca.crt`. */
  dir(issue: IssueOptions, parts?: { readonly issuer?: TestCa; readonly trusts?: TestCa }): Promise<string>;
}

export const serverNames: IssueOptions = { cn: 'archwright-agent', dns: ['archwright-agent'], server: true };
export const clientNames: IssueOptions = { cn: 'archwright-webhook', client: true };

/** A certificate authority, and the directories of an agent and of a webhook. */
export async function createPki(t: Test): Promise<Pki> {
  const ca = await createCa();
  const dir: Pki['dir'] = async (issue, { issuer = ca, trusts = ca } = {}) =>
    tlsDirectory(t, await issuer.issue(issue), trusts.cert);
  return { ca, dir, serverDir: await dir(serverNames), clientDir: await dir(clientNames) };
}

/** A request to an agent. */
export interface FactsRequest {
  readonly images: readonly { readonly image: string; readonly maxAgeMs?: number }[];
  readonly namespace?: string;
  readonly auths?: unknown;
  readonly serviceAccount?: unknown;
  readonly deadlineMs: number;
}

export interface Script {
  fingerprint?: string;
  /** Reported node name. Default: none. */
  node?: string;
  architecture?: string;
  /** Reported runtime and CPU of the node. */
  report?: NodeReport;
  /**
   * The answer to `POST /v1/facts`: `results` as lines, anything else as JSON; `undefined`: it is written to
   * `response`.
   */
  facts?: (body: FactsRequest, response: ServerResponse, request: IncomingMessage) => unknown;
  /** Writes the answer to `GET /v1/facts`. */
  known?: (response: ServerResponse) => void;
  /** The answer to `GET /v1/info`. */
  info?: (response: ServerResponse) => unknown;
}

export interface ScriptedAgent {
  readonly url: string;
  readonly port: number;
  /** Can be changed while the agent runs. */
  readonly script: Script;
  readonly requests: FactsRequest[];
  /** Number of connections opened so far. */
  readonly connections: () => number;
  /** Number of open connections. */
  open(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a scripted agent. By default it has facts of every image. */
export async function startScripted(t: Test, pki: Pki, script: Script = {}): Promise<ScriptedAgent> {
  const { cert, key } = await pki.ca.issue(serverNames);
  const requests: FactsRequest[] = [];
  let connections = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: unknown;
    if (request.url === '/v1/info') {
      const { fingerprint = 'same', node: nodeName, architecture, report: node } = script;
      answer = script.info
        ? script.info(response)
        : { credentialFingerprint: fingerprint, nodeName, architecture, node };
    } else if (request.method === 'GET') {
      if (script.known) return script.known(response);
      response.end();
      return;
    } else {
      const body = (await json(request)) as FactsRequest;
      requests.push(body);
      answer = script.facts
        ? script.facts(body, response, request)
        : { results: body.images.map(({ image }) => factsOf(image)) };
    }
    const results = (answer as { readonly results?: unknown } | undefined)?.results;
    if (Array.isArray(results)) {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.end(results.map((line) => `${JSON.stringify(line)}\n`).join(''));
    } else if (answer !== undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    }
  }

  const server = createServer(
    { cert, key, ca: pki.ca.cert, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      handle(request, response).catch(() => response.destroy());
    },
  );
  server.on('secureConnection', () => {
    connections += 1;
  });
  const port = await listen(server);
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    server.close().closeAllConnections();
    await once(server, 'close');
  };
  t.teardown(stop);
  return {
    url: `https://127.0.0.1:${port}`,
    port,
    script,
    requests,
    connections: () => connections,
    open: promisify(server.getConnections.bind(server)),
    stop,
  };
}

/** Opens a connection that is closed with the test. */
export async function connect(
  t: Test,
  pki: Pki,
  options: Partial<ConnectionOptions> & { readonly dir?: string; readonly pollMs?: number } = {},
): Promise<AgentConnection> {
  const { dir = pki.clientDir, pollMs, ...others } = options;
  const tls = await openTlsFiles({ dir, pollMs, use: 'client', ca: true, log: silentLog });
  const connection = createConnection({ tls, serverNameOf: () => agentServerName, ...others });
  t.teardown(() => connection.close());
  return connection;
}

/** A discovery that a test fills. */
export function createAgentList(
  agents: readonly AgentAddress[] = [],
): Discovery & { readonly set: (agents: readonly AgentAddress[]) => void } {
  const listeners: (() => void)[] = [];
  return {
    set: (found) => {
      agents = found;
      for (const listener of listeners) listener();
    },
    current: () => agents,
    ready: () => Promise.resolve(),
    onChange: (listener) => void listeners.push(listener),
  };
}

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
    discovery: 'current' in agents ? agents : createAgentList(agents),
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

/** URLs of the agents that a fleet asks for these images, in their order. All agents answer, in this process. */
export async function ownersOf(images: readonly string[], agents: readonly AgentAddress[]) {
  const asked: string[] = [];
  const fleet = createFleet({
    discovery: createAgentList(agents),
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
