/**
 * A webhook and agents as processes, a working registry, and a tarpit: a registry that accepts connections
 * and never responds. For the attack tests and `npm run bench:hostile`.
 */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer } from 'node:https';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { send } from '../serving/support.ts';
import { podOf, review } from '../webhook/support.ts';
import { createCa, issueTls, type TestCa } from './certificates.ts';
import { listen } from './listen.ts';
import { startProgram, type Part, type Program } from './program.ts';
import { multiArch } from './registry/content.ts';
import { startTestRegistry } from './registry/server.ts';

export interface Decided {
  /** Whether the pod got a required architecture. */
  readonly isPlaced: boolean;
  readonly tookMs: number;
  /** The response, for the message of a failed assertion. */
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
  const start = async (part: Part, ...flags: readonly string[]): Promise<Program> => {
    const started = await startProgram(part, flags, { home: dir });
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
  const empty = join(dir, 'host');
  mkdirSync(empty);
  const nodeFlags = ['--tls-dir', agentDir, '--host-root', empty];
  const nodes = await Promise.all(
    Array.from({ length: agents }, (_, index) =>
      start('agent', ...nodeFlags, '--node-name', `node-${index}`),
    ),
  );
  const budget = ['--inline-budget', inlineBudget];
  const urls = nodes.flatMap(({ url }) => ['--agents', url]);
  const webhook = await start(
    ...(['webhook', '--tls-dir', webhookDir, ...budget, '--agent-tls-dir', clientDir, ...urls] as const),
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

/** All of 127.0.0.0/8 is this machine, so one server stands for any number of tarpit registries. */
async function startTarpit(ca: TestCa) {
  const sockets = new Set<Socket>();
  // Requests are read, without a response.
  const server = createServer(await ca.issue({ cn: 'tarpit', server: true }), () => undefined);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
  });
  const port = await listen(server, '0.0.0.0');
  let images = 0;
  return {
    /** Connections that hang now. */
    held: () => sockets.size,
    /** Resolves when this number of connections hang. */
    untilHeld: async (count: number): Promise<void> => {
      while (sockets.size < count) await once(server, 'connection');
    },
    /** New images, each in its own repository. @param hosts number of registries */
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
  const object = { ...podOf(images), metadata: { generateName: 'app-', namespace } };
  const body = review({ namespace, object });
  const headers = { 'content-type': 'application/json' };
  const answered = await send(url, { method: 'POST', agent, headers, body });
  const { response } = JSON.parse(answered.body) as { response: { patch?: string; warnings?: string[] } };
  const patch = Buffer.from(response.patch ?? '', 'base64').toString();
  const answer = [patch, ...(response.warnings ?? [])].join('\n');
  return { isPlaced: patch.includes('kubernetes.io/arch'), tookMs: performance.now() - started, answer };
}
