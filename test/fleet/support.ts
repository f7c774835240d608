/** Agents for tests, in this process or as servers with mutual TLS, connections to them, and fleets over them. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { json } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { unlessAborted } from '../../src/async/wait.ts';
import { agentServerName } from '../../src/certificates/agent-names.ts';
import {
  AgentError,
  createConnection,
  type AgentConnection,
  type ConnectionOptions,
} from '../../src/fleet/connection.ts';
import { openTlsFiles } from '../../src/serving/tls-files.ts';
import { Ranking, type AgentAddress, type Discovery } from '../../src/fleet/discovery.ts';
import { createFleet, type FleetOptions } from '../../src/fleet/fleet.ts';
import type { FactsErrorCode, ImageFacts, ImageRequest } from '../../src/images/facts/facts.ts';
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
  readonly images: readonly [{ readonly image: string; readonly maxAgeMs?: number }];
  readonly namespace?: string;
  readonly auths?: unknown;
  readonly serviceAccount?: unknown;
  readonly deadlineMs: number;
}

/** What an agent says of itself. */
interface Reported {
  fingerprint?: string;
  /** Reported node name. Default: none. */
  node?: string;
  architecture?: string;
  /** Reported runtime and CPU of the node. */
  report?: NodeReport;
}

/** Of an agent in this process. It can be changed while the agent is used. */
export interface Script extends Reported {
  /** The answer to `POST /v1/facts`. Default: facts of the image. */
  facts?: Answer;
  /** The lines of `GET /v1/facts`. */
  known?: () => Iterable<string> | AsyncIterable<string>;
  /** The answer to `GET /v1/info`. */
  info?: () => unknown;
}
export type Answer = (body: FactsRequest, signal: AbortSignal) => unknown;

export interface LocalAgent extends AgentAddress {
  readonly script: Script;
  readonly requests: FactsRequest[];
}

/** Of a server: an answer that is `undefined` is written to `response`. */
export interface ServerScript extends Reported {
  facts?: (body: FactsRequest, response: ServerResponse, request: IncomingMessage) => unknown;
  known?: (response: ServerResponse) => void;
}

const infoOf = ({ fingerprint = 'same', node: nodeName, architecture, report: node }: Reported) => ({
  credentialFingerprint: fingerprint,
  nodeName,
  architecture,
  node,
});
const factsOfAny = ({ images: [{ image }] }: FactsRequest): ImageFacts => factsOf(image);

/** An agent that answers with this error. */
export const denied =
  (code: FactsErrorCode): Answer =>
  ({ images: [{ image }] }) =>
    failureOf(image, code);
/** The connection ends within the answer. */
export const cut = (): never => {
  throw new AgentError('unreachable', 'the connection was lost during the response');
};
/** Never answers. */
export const hanging: Answer = (_, signal) => unlessAborted(new Promise(() => undefined), signal);

/** A connection to agents in this process. */
function connectionTo(agents: readonly LocalAgent[]): AgentConnection {
  const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  const agentAt = (url: string): LocalAgent => agents.find((agent) => agent.url === url) ?? cut();
  return {
    json: async (url, path, { body, signal }) => {
      const { script, requests } = agentAt(url);
      if (path === '/v1/info') return copy(await (script.info ? script.info() : infoOf(script)));
      const request = copy(body) as FactsRequest;
      requests.push(request);
      return copy(await (script.facts ?? factsOfAny)(request, signal));
    },
    lines: async function* (url) {
      yield* agentAt(url).script.known?.() ?? [];
    },
    close: () => Promise.resolve(),
  };
}

/** Starts an agent as a server. By default it has facts of every image. */
export async function startScripted(t: Test, pki: Pki, script: ServerScript = {}) {
  const { cert, key } = await pki.ca.issue(serverNames);
  const requests: FactsRequest[] = [];
  let connections = 0;

  async function answerTo(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    if (request.url === '/v1/info') return infoOf(script);
    if (request.method === 'GET') return script.known ? script.known(response) : void response.end();
    const body = (await json(request)) as FactsRequest;
    requests.push(body);
    return script.facts ? script.facts(body, response, request) : factsOfAny(body);
  }

  const server = createServer(
    { cert, key, ca: pki.ca.cert, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      answerTo(request, response).then(
        (answer) => answer !== undefined && response.end(JSON.stringify(answer)),
        () => response.destroy(),
      );
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
    /** Can be changed while the agent runs. */
    script,
    requests,
    /** Number of connections opened so far. */
    connections: () => connections,
    /** Number of open connections. */
    open: promisify(server.getConnections.bind(server)),
    stop,
  };
}

/** Opens a connection to servers that is closed with the test. */
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
export function createAgentList(agents: readonly AgentAddress[] = []) {
  const listeners: (() => void)[] = [];
  return {
    set: (found: readonly AgentAddress[]) => {
      agents = found;
      for (const listener of listeners) listener();
    },
    current: () => agents,
    ready: () => Promise.resolve(),
    onChange: (listener) => void listeners.push(listener),
  } satisfies Discovery & Record<'set', unknown>;
}

export const image = 'registry.example/team/app:1';

/** Agents in this process, in the order in which a lookup of `image` asks them. */
export function agentsOf(scripts: readonly Script[]): LocalAgent[] {
  const addresses = scripts.map((_, index) => ({ url: `https://10.0.0.${index + 1}:9443` }));
  const ranked = new Ranking(addresses).order('registry.example/team/app');
  return ranked.map(({ url }, index) => ({ url, script: { ...scripts[index] }, requests: [] }));
}

/** A fleet of these agents, which is closed with the test. */
export function startFleet(t: Test, agents: readonly LocalAgent[], options: Partial<FleetOptions> = {}) {
  const metrics = createMetrics();
  const fleet = createFleet({
    discovery: createAgentList(agents),
    connection: connectionTo(agents),
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

/** A fleet with one agent per script, in the order in which a lookup of `image` asks them; the groups are known. */
export async function setup(t: Test, scripts: readonly Script[], clock = createFakeClock()) {
  const agents = agentsOf(scripts);
  const { log, lines } = readableLog();
  const { fleet, metric } = startFleet(t, agents, { log, clock });
  await fleet.grouped(neverAborted);
  return {
    fleet,
    agents,
    lines,
    /** Looks up `image`. */
    lookup: (request: Partial<ImageRequest> = {}, signal = neverAborted) =>
      fleet.lookup({ ...requestFor(image), ...request }, { signal }),
    /** The number of requests at each agent. */
    requestCounts: () => agents.map(({ requests }) => requests.length),
    metric,
  };
}
