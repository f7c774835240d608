/** An agent for each node and the webhook, with their certificates, credentials and configuration. */
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createCa, type IssueOptions, type TestCa } from '../../test/support/certificates.ts';
import { nodes, type NodeName } from './cluster.ts';
import { DemoError } from './error.ts';
import { startProcess, type RunningProcess } from './processes.ts';
import { logins } from './registries.ts';
import type { Workspace } from './workspace.ts';

/** An agent is ready when it listens, the webhook when it has its agents. */
const readyTimeoutMs = 300_000;
const readyPauseMs = 25;
/** Health and metrics are answered from memory. */
const requestTimeoutMs = 60_000;

export interface Server {
  readonly process: RunningProcess;
  /** Its URL. */
  readonly url: string;
}

export interface Servers {
  readonly agents: ReadonlyMap<NodeName, Server>;
  readonly webhook: Server;
  /** Rejects on an unexpected end of one of them. */
  readonly failed: Promise<never>;
  /** File with the authority that signed the webhook's certificate. */
  readonly webhookCaFile: string;
  /** The same as text. */
  readonly webhookCa: string;
  /** Certificate of the webhook's role, for requests to the agents. */
  readonly agentTlsDir: string;
}

export interface ServersOptions {
  readonly workspace: Workspace;
  readonly configFile: string;
  readonly kubeconfig: string;
  /** `HTTPS_PROXY` of the agents. */
  readonly proxy: string;
}

/** Starts all of them and resolves when they are ready. They end with the workspace. */
export async function startServers(options: ServersOptions): Promise<Servers> {
  const { workspace } = options;
  // Two authorities: one that agents and their clients trust, and one that the API server trusts.
  const [agentCa, webhookCa] = await Promise.all([createCa('demo agents'), createCa('demo webhook')]);
  const agentTlsDir = await tlsDir(workspace, 'tls/webhook-to-agents', agentCa, {
    cn: 'archwright-webhook',
    client: true,
  });
  const names = Object.keys(nodes) as NodeName[];
  const started = await Promise.all(
    names.map(async (name) => [name, await startAgent(options, agentCa, name)] as const),
  );
  const agents = new Map(started);
  const webhook = await startWebhook(options, webhookCa, agents, agentTlsDir);
  const webhookCaFile = await workspace.write('webhook-ca.crt', webhookCa.cert);
  const failed = Promise.race([webhook, ...agents.values()].map(({ process }) => process.failed));
  // A caller may wait for it, and need not.
  failed.catch(() => undefined);
  return { agents, webhook, failed, agentTlsDir, webhookCaFile, webhookCa: webhookCa.cert };
}

async function startAgent(
  { workspace, configFile, proxy }: ServersOptions,
  ca: TestCa,
  name: NodeName,
): Promise<Server> {
  await writeCredentials(workspace, name);
  const tls = await tlsDir(workspace, `tls/${name}`, ca, {
    cn: 'archwright-agent',
    dns: ['archwright-agent'],
  });
  const child = start(workspace, `agent-${name}`, { HTTPS_PROXY: proxy }, [
    'agent',
    ...flags({
      config: configFile,
      listen: '127.0.0.1:0',
      'metrics-listen': '127.0.0.1:0',
      'tls-dir': tls,
      'host-root': join(workspace.dir, name),
      'creds-dir': join(workspace.dir, name, 'creds'),
      'node-name': name,
    }),
  ]);
  const { api, health } = await child.logged('the agent is listening');
  await untilReady(child, String(health));
  return { process: child, url: String(api) };
}

async function startWebhook(
  { workspace, configFile, kubeconfig }: ServersOptions,
  ca: TestCa,
  agents: ReadonlyMap<NodeName, Server>,
  agentTlsDir: string,
): Promise<Server> {
  const tls = await tlsDir(workspace, 'tls/webhook', ca, {
    cn: 'archwright-webhook',
    dns: ['localhost'],
    ip: ['127.0.0.1'],
  });
  const child = start(workspace, 'webhook', {}, [
    'webhook',
    ...flags({
      config: configFile,
      listen: '127.0.0.1:0',
      'metrics-listen': '127.0.0.1:0',
      'tls-dir': tls,
      agents: [...agents.values()].map(({ url }) => url).join(','),
      'agent-tls-dir': agentTlsDir,
      kubeconfig: kubeconfig,
    }),
  ]);
  const { url } = await child.logged('the webhook is listening');
  const { health } = await child.logged('the webhook serves health and metrics');
  await untilReady(child, String(health));
  return { process: child, url: String(url) };
}

/**
 * The credentials of a node, in a node's locations. Each node has one that the other lacks: if one node may
 * not pull an image, the other's agent is used.
 */
async function writeCredentials(workspace: Workspace, name: NodeName): Promise<void> {
  if (name === 'node-a') {
    const { username, password } = logins.nodeA;
    const auth = Buffer.from(`${username}:${password}`).toString('base64');
    await workspace.write(
      join(name, 'var/lib/kubelet/config.json'),
      JSON.stringify({ auths: { 'https://index.docker.io/v1/': { auth } } }),
    );
  } else {
    const { username, password } = logins.nodeB;
    await workspace.write(
      join(name, 'creds/private.example.toml'),
      `user = ${JSON.stringify(username)}\nsecret = ${JSON.stringify(password)}\n`,
    );
  }
}

function flags(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

function start(
  workspace: Workspace,
  name: string,
  more: Readonly<Record<string, string>>,
  args: readonly string[],
): RunningProcess {
  // Not the user's environment: its proxies and settings would change what the demo shows.
  const { PATH = '', NODE_COMPILE_CACHE: cache } = process.env;
  const env = {
    PATH,
    HOME: workspace.dir,
    ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }),
    ...more,
  };
  const child = startProcess({ name, args, env, logFile: join(workspace.dir, 'logs', `${name}.log`) });
  workspace.onClose(() => child.end());
  return child;
}

/** Writes `tls.crt`, `tls.key` and `ca.crt`. */
async function tlsDir(workspace: Workspace, path: string, ca: TestCa, issue: IssueOptions): Promise<string> {
  const { cert, key } = await ca.issue(issue);
  await workspace.write(join(path, 'tls.crt'), cert);
  await workspace.write(join(path, 'tls.key'), key);
  await workspace.write(join(path, 'ca.crt'), ca.cert);
  return join(workspace.dir, path);
}

async function untilReady(child: RunningProcess, health: string): Promise<void> {
  const end = performance.now() + readyTimeoutMs;
  for (;;) {
    const answer = await Promise.race([get(`${health}/readyz`), child.failed]);
    if (answer?.status === 200) return;
    if (performance.now() > end) {
      throw new DemoError(`${child.name} was not ready within ${readyTimeoutMs} ms: ${answer?.body.trim()}`);
    }
    await pause(readyPauseMs);
  }
}

/** Requests a page; `undefined` if there is no response. */
function get(url: string): Promise<{ readonly status: number; readonly body: string } | undefined> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false, timeout: requestTimeoutMs }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', () => resolve(undefined));
    });
    sent.on('timeout', () => sent.destroy()).on('error', () => resolve(undefined));
    sent.end();
  });
}
