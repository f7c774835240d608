/**
 * A webhook and agents as processes of their own, a registry that works, and one that accepts connections and never
 * answers (a tarpit). For the attack tests and `npm run bench:hostile`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, createServer, request } from 'node:https';
import { get } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createCa, issueTls, type TestCa } from './certificates.ts';
import { compileCache } from './compile-cache.ts';
import { multiArch } from './registry/content.ts';
import { startTestRegistry } from './registry/server.ts';

const program = fileURLToPath(new URL('../../cmd/archwright.ts', import.meta.url));
/** Ends only what hangs. */
const startLimitMs = 150_000;

export interface Decided {
  /** Whether the pod has a required architecture now. */
  readonly isPlaced: boolean;
  readonly tookMs: number;
  /** The answer, for the message of a failed assertion. */
  readonly answer: string;
}

export interface HostileOptions {
  readonly agents: number;
  /** `inlineBudget` of the webhook: how long an admission waits. */
  readonly inlineBudget: string;
}

export type HostileWorld = Awaited<ReturnType<typeof startHostileWorld>>;

export async function startHostileWorld({ agents, inlineBudget }: HostileOptions) {
  const dir = mkdtempSync(join(tmpdir(), 'archwright-hostile-'));
  const closing: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true })];
  const ca = await createCa();
  const start = async (args: readonly string[]): Promise<Program> => {
    const started = await startProgram(dir, args);
    closing.push(() => started.stop());
    return started;
  };
  const registry = await startTestRegistry();
  const tarpit = await startTarpit(ca);
  closing.push(
    () => registry.close(),
    () => tarpit.close(),
  );
  const agentDir = await issueTls(ca, join(dir, 'agent'), {
    cn: 'archwright-agent',
    dns: ['archwright-agent'],
    server: true,
  });
  const clientDir = await issueTls(ca, join(dir, 'client'), { cn: 'archwright-webhook', client: true });
  const webhookDir = await issueTls(ca, join(dir, 'webhook'), {
    cn: 'webhook',
    ip: ['127.0.0.1'],
    server: true,
  });
  const ports = ['--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0'];
  const empty = join(dir, 'host');
  mkdirSync(empty);
  const nodes = await Promise.all(
    Array.from({ length: agents }, (_, index) =>
      start(['agent', ...ports, '--tls-dir', agentDir, '--host-root', empty, '--node-name', `node-${index}`]),
    ),
  );
  const webhook = await start(
    [
      'webhook',
      ...ports,
      '--tls-dir',
      webhookDir,
      '--inline-budget',
      inlineBudget,
      '--agent-tls-dir',
      clientDir,
    ].concat(nodes.flatMap(({ url }) => ['--agents', url])),
  );
  const pool = new Agent({ ca: ca.cert, keepAlive: true });
  closing.push(() => pool.destroy());
  let pods = 0;

  return {
    tarpit,
    webhook,
    agents: nodes,
    /** A new image that every architecture can run. */
    goodImage: (): string => {
      pods += 1;
      registry.push(
        `team/app-${pods}`,
        '1',
        multiArch(['linux/amd64', 'linux/arm64'], { label: String(pods) }),
      );
      return `${registry.host}/team/app-${pods}:1`;
    },
    /** Creates a pod as the API server does. */
    create: (namespace: string, images: readonly string[]): Promise<Decided> =>
      create(pool, `${webhook.url}/mutate?timeout=10s`, namespace, images),
    close: async () => {
      for (const close of closing.toReversed()) await close();
    },
  };
}

type Program = Awaited<ReturnType<typeof startProgram>>;

export async function startProgram(
  home: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
) {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, ...compileCache, ...more };
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const listening = new RegExp('"(?:url|api)":"(https:[^"]+)"');
  const health = new RegExp('"health":"(http:[^"]+)"');
  await untilTrue(
    child,
    () => listening.test(log) && health.test(log),
    () => log,
  );
  const [url = '', healthUrl = ''] = [listening, health].map((found) => found.exec(log)?.[1]);
  return {
    url,
    log: () => log,
    /** The value of a sample of its metrics; 0 if there is none. */
    metric: async (sample: string): Promise<number> => {
      const [response] = (await once(get(`${healthUrl}/metrics`), 'response')) as [
        Parameters<typeof text>[0],
      ];
      const line = (await text(response)).split('\n').find((one) => one.startsWith(`${sample} `));
      return line === undefined ? 0 : Number(line.split(' ').at(-1));
    },
    /** The most resident memory that the process ever had. */
    peakBytes: (): number =>
      Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

async function untilTrue(child: ChildProcess, what: () => boolean, log: () => string): Promise<void> {
  const end = Date.now() + startLimitMs;
  while (!what()) {
    if (Date.now() > end || child.exitCode !== null) throw new Error(`it did not start: ${log()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** All of 127.0.0.0/8 is this machine, so there are as many tarpit registries as names are needed. */
async function startTarpit(ca: TestCa) {
  const sockets = new Set<Socket>();
  // Requests are read and never answered.
  const server = createServer(await ca.issue({ cn: 'tarpit', server: true }), () => undefined);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
  });
  await once(server.listen(0, '0.0.0.0'), 'listening');
  const { port } = server.address() as AddressInfo;
  let images = 0;
  return {
    /** Connections that hang now. */
    held: () => sockets.size,
    /** Resolves when so many connections hang. */
    untilHeld: async (count: number): Promise<void> => {
      while (sockets.size < count) await once(server, 'connection');
    },
    /** New images, each of another repository. @param hosts registries that they are spread over */
    images: (count: number, hosts: number): string[] =>
      Array.from({ length: count }, (_, index) => {
        images += 1;
        const host = index % hosts;
        return `127.1.${Math.floor(host / 250)}.${(host % 250) + 1}:${port}/tar/pit-${images}:1`;
      }),
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function create(
  agent: Agent,
  url: string,
  namespace: string,
  images: readonly string[],
): Promise<Decided> {
  const started = performance.now();
  const sent = request(url, { method: 'POST', agent, headers: { 'content-type': 'application/json' } });
  sent.end(podReview(namespace, images));
  const [response] = (await once(sent, 'response')) as [Parameters<typeof text>[0]];
  const { response: reply } = JSON.parse(await text(response)) as {
    response: { patch?: string; warnings?: string[] };
  };
  const patch = Buffer.from(reply.patch ?? '', 'base64').toString();
  const answer = [patch, ...(reply.warnings ?? [])].join('\n');
  return { isPlaced: patch.includes('kubernetes.io/arch'), tookMs: performance.now() - started, answer };
}

function podReview(namespace: string, images: readonly string[]): string {
  const containers = images.map((image, index) => ({ name: `c-${index}`, image }));
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: '00000000-0000-0000-0000-000000000000',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace,
      operation: 'CREATE',
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { generateName: 'app-', namespace },
        spec: { containers },
      },
    },
  });
}
