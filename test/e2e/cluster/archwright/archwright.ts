/**
 * archwright outside of a cluster: agents, webhook and controller as child processes, with certificates of
 * the test's authorities, and a webhook configuration by URL. Each has a kubeconfig with administrator rights,
 * named after it (`archwright-webhook`, …), and ends with the cluster.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createCa, issueTls } from '../../../support/certificates.ts';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import type { Cluster } from '../harness.ts';
import type { Tuning } from './controller.ts';
import { freePorts } from '../control-plane/ports.ts';
import { ready, startProcess, type Running } from '../control-plane/processes.ts';

export const ownNamespace = 'archwright';

/** Flag → value: `{ 'max-gate-duration': '5s' }`. */
export type Settings = Readonly<Record<string, string>>;

export interface TlsDirs {
  readonly webhookCa: string;
  readonly webhook: string;
  readonly agent: string;
  readonly webhookClient: string;
  readonly controllerClient: string;
}

/** No files: every process gets its certificates from the controller or from Secrets. */
export const noTls: TlsDirs = {
  webhookCa: '',
  webhook: '',
  agent: '',
  webhookClient: '',
  controllerClient: '',
};

export interface Server {
  readonly process: Running;
  readonly url: string;
  /** Base of `/readyz` and `/metrics`. */
  readonly health: string;
}

export interface StartOptions {
  readonly tls: TlsDirs;
  /** Name of the process, its log and its identity. Unique among running processes. */
  readonly name?: string;
  readonly settings?: Settings;
  readonly env?: Readonly<Record<string, string>>;
  readonly entry?: string;
  readonly port?: number;
  /** Whether it may end before it is ready, because it kills itself. */
  readonly mayEnd?: boolean;
}

export interface ControllerOptions extends WithAgents {
  readonly tuning?: Tuning;
}

export interface WithAgents extends StartOptions {
  readonly agents?: readonly Pick<Server, 'url'>[];
}

const controllerEntry = fileURLToPath(new URL('controller.ts', import.meta.url));
const programEntry = fileURLToPath(new URL('../../../../cmd/archwright.ts', import.meta.url));

export async function prepareArchwright(cluster: Cluster): Promise<TlsDirs> {
  const [agents, webhooks] = await Promise.all([createCa('agents'), createCa('webhook')]);
  const dir = join(cluster.directory, 'tls');
  await cluster.createNamespace(ownNamespace);
  return {
    webhookCa: webhooks.cert,
    webhook: await issueTls(webhooks, join(dir, 'webhook'), { cn: 'archwright-webhook', ip: ['127.0.0.1'] }),
    agent: await issueTls(agents, join(dir, 'agent'), { cn: 'archwright-agent', dns: ['archwright-agent'] }),
    webhookClient: await issueTls(agents, join(dir, 'webhook-client'), {
      cn: 'archwright-webhook',
      client: true,
    }),
    controllerClient: await issueTls(agents, join(dir, 'controller-client'), {
      cn: 'archwright-controller',
      client: true,
    }),
  };
}

export async function startAgent(cluster: Cluster, options: StartOptions): Promise<Server> {
  const { name = 'agent', tls } = options;
  return start(cluster, 'agent', options, {
    'tls-dir': tls.agent,
    'node-name': name,
    'host-root': join(cluster.directory, 'no-host'),
  });
}

export async function startWebhook(cluster: Cluster, options: WithAgents): Promise<Server> {
  return start(cluster, 'webhook', options, {
    // Without it, from its Secret.
    ...(options.tls.webhook !== '' && { 'tls-dir': options.tls.webhook }),
    namespace: ownNamespace,
    'drain-time': '1s',
    ...(await kubeconfigSetting(cluster, 'archwright-webhook')),
    ...agentSettings(options.agents, options.tls.webhookClient),
  });
}

/** Resolves when it answers, which may be before it leads. */
export async function startController(cluster: Cluster, options: ControllerOptions): Promise<Server> {
  const { tuning, entry = tuning && controllerEntry } = options;
  const env = { ...options.env, ...(tuning && { TUNING: JSON.stringify(tuning) }) };
  return start(
    cluster,
    'controller',
    { ...options, env, ...(entry && { entry }) },
    {
      namespace: ownNamespace,
      certificates: 'external',
      ...(await kubeconfigSetting(cluster, options.name ?? 'archwright-controller')),
      ...agentSettings(options.agents, options.tls.controllerClient),
    },
  );
}

export async function runArchwright(
  cluster: Cluster,
  args: readonly string[],
): Promise<{ readonly code: number | string; readonly output: string }> {
  const running = startProcess({
    name: `archwright-${args[0] ?? ''}-${performance.now().toFixed(0)}`,
    program: process.execPath,
    args: [programEntry, ...args],
    env: environment(cluster),
    logs: cluster.logs,
  });
  return { code: await running.ended, output: running.log() };
}

/** Makes the API server call the webhook for new pods, and waits until it does. */
export async function configureWebhook(
  cluster: Cluster,
  options: {
    readonly tls: TlsDirs;
    readonly webhook: Server;
    readonly failurePolicy?: 'Ignore' | 'Fail';
    readonly daemonSets?: boolean;
  },
): Promise<void> {
  const { tls, webhook, failurePolicy = 'Ignore', daemonSets = false } = options;
  const key = 'kubernetes.io/metadata.name';
  const caBundle = Buffer.from(tls.webhookCa).toString('base64');
  const created = { apiVersions: ['v1'], operations: ['CREATE'] };
  await cluster.make('MutatingWebhookConfiguration', 'archwright', {
    webhooks: [
      {
        name: 'pods.arch.example',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy,
        timeoutSeconds: 10,
        reinvocationPolicy: 'IfNeeded',
        clientConfig: { url: `${webhook.url}/mutate`, caBundle },
        rules: [
          { ...created, apiGroups: [''], resources: ['pods'] },
          ...(daemonSets ? [{ ...created, apiGroups: ['apps'], resources: ['daemonsets'] }] : []),
        ],
        namespaceSelector: {
          matchExpressions: [{ key, operator: 'NotIn', values: [ownNamespace, 'kube-system'] }],
        },
      },
    ],
  });
  await untilCalled(cluster, webhook);
}

async function untilCalled(cluster: Cluster, webhook: Server): Promise<void> {
  const before = await metricOf(webhook, 'archwright_admissions_total');
  const until = performance.now() + 120_000;
  while (performance.now() < until) {
    await tryPod(cluster);
    if ((await metricOf(webhook, 'archwright_admissions_total')) > before) return;
  }
  throw new Error('the API server does not call the webhook');
}

export async function tryPod(cluster: Cluster): Promise<Pod> {
  const containers = [{ name: 'app', image: 'probe.invalid/probe:1', imagePullPolicy: 'Never' }];
  const pod = { metadata: { generateName: 'probe-' }, spec: { containers } };
  return cluster.post<Pod>('/api/v1/namespaces/default/pods', pod, { dryRun: 'All' });
}

async function start(
  cluster: Cluster,
  subcommand: string,
  options: StartOptions,
  settings: Settings,
): Promise<Server> {
  const name = options.name ?? subcommand;
  const [free = 0, metricsPort = 0] = await freePorts(2);
  const port = options.port ?? free;
  const health = `http://127.0.0.1:${metricsPort}`;
  const all = {
    ...(subcommand !== 'controller' && { listen: `127.0.0.1:${port}` }),
    'metrics-listen': `127.0.0.1:${metricsPort}`,
    ...settings,
    ...options.settings,
  };
  const process_ = startProcess({
    name,
    program: process.execPath,
    args: [
      options.entry ?? programEntry,
      subcommand,
      ...Object.entries(all).map(([flag, value]) => `--${flag}=${value}`),
    ],
    env: { ...environment(cluster), ...options.env },
    logs: cluster.logs,
  });
  cluster.onStop(() => process_.stop());
  await ready(process_, async () => {
    const response = await fetch(`${health}/${subcommand === 'controller' ? 'healthz' : 'readyz'}`);
    await response.body?.cancel();
    return response.ok;
  }).catch((error: unknown) => {
    if (options.mayEnd !== true || !process_.hasEnded()) throw error;
  });
  return { process: process_, url: `https://127.0.0.1:${port}`, health };
}

/** Without proxies and settings of this process. */
function environment(cluster: Cluster): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', HOME: cluster.directory };
}

async function kubeconfigSetting(cluster: Cluster, cn: string): Promise<Settings> {
  return { kubeconfig: await cluster.identities.kubeconfig({ cn, group: 'system:masters' }, cluster.server) };
}

function agentSettings(agents: WithAgents['agents'], tlsDir: string): Settings {
  if (agents === undefined) return {};
  const urls = agents.map(({ url }) => url).join(',');
  // Without a directory, from its Secret.
  return { agents: urls, ...(tlsDir !== '' && { 'agent-tls-dir': tlsDir }) };
}

/** The sum of a metric's samples; 0 without any. */
export async function metricOf({ health }: Pick<Server, 'health'>, name: string): Promise<number> {
  const text = await (await fetch(`${health}/metrics`)).text();
  const samples = text.split('\n').filter((line) => /^\w+/.exec(line)?.[0] === name);
  return samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
