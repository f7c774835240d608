/**
 * Load that archwright withstands: attacks by a tenant while a well-behaved one creates pods of new images.
 * The webhook and the agents are processes of their own; the attacker's registries read requests and never
 * answer. `npm run bench:hostile`; `-- TEXT` runs only attacks with the text in their names.
 */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { startHostileWorld, type Decided, type HostileWorld } from '../test/support/hostile.ts';
import { percentile } from './support/load.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

const agents = 3;
const MiB = 1024 * 1024;
/** Two waves. */
const times = { durationMs: 20_000, attackEveryMs: 12_000, podEveryMs: 100 };
/** Images: as many as are looked up for one pod. */
const imagesPerPod = 256;
/** The share of pods that are placed within this time. */
const goal = { withinMs: 1000, share: 0.99 };

/** Creates the pods of one wave. */
type Attack = (world: HostileWorld) => Promise<unknown>[];

const pod = (
  world: HostileWorld,
  hosts: number,
  namespace = 'attacker',
  images = imagesPerPod,
): Promise<unknown> => world.create(namespace, world.tarpit.images(images, hosts));
const several = (count: number, make: (index: number) => Promise<unknown>): Promise<unknown>[] =>
  Array.from({ length: count }, (_, index) => make(index));

const attacks: Readonly<Record<string, Attack>> = {
  none: () => [],
  'one pod, 256 images of one registry': (world) => [pod(world, 1)],
  'one pod, 256 images of 256 registries': (world) => [pod(world, imagesPerPod)],
  '20 such pods at once': (world) => several(20, () => pod(world, imagesPerPod)),
  'such a pod in each of 8 namespaces': (world) =>
    several(8, (index) => pod(world, imagesPerPod, `attacker-${index}`)),
  ...Object.fromEntries(
    [40, 100, 200].map((count): [string, Attack] => [
      `a pod with 64 images of 64 registries in each of ${count} namespaces`,
      (world) => several(count, (index) => pod(world, 64, `attacker-${index}`, 64)),
    ]),
  ),
};

interface Measured {
  readonly attack: string;
  readonly decided: readonly Decided[];
  readonly webhookBytes: number;
  readonly agentBytes: number;
}

/** Takes about two minutes. @param text of the attacks to measure. Default: all. */
export async function benchHostile(text = ''): Promise<Section> {
  const measured: Measured[] = [];
  for (const [attack, wave] of Object.entries(attacks))
    if (attack.includes(text)) measured.push(await measure(attack, wave));
  const [webhook = 0, agent = 0] = await memoryLimits();
  const worst = Math.min(...measured.map(({ decided }) => shareOf(decided)));
  const peakMiB = (bytes: (one: Measured) => number): number => Math.max(...measured.map(bytes)) / MiB;
  return {
    script: 'bench:hostile',
    title: 'A hostile tenant',
    text: [
      `A tenant creates a pod with a new image every ${times.podEveryMs} ms, for ${times.durationMs / 1000} s, and another one attacks every ` +
        `${times.attackEveryMs / 1000} s with images of registries that never respond. One webhook and ${agents} agents, from source; memory is the ` +
        'peak of a process.',
      '',
      table(
        ['attack', `placed within ${goal.withinMs / 1000} s`, 'p50 ms', 'p99 ms', 'webhook MiB', 'agent MiB'],
        measured.map((one) => rowOf(one)),
      ),
    ].join('\n'),
    budgets: [
      {
        what: 'pods of the good tenant not placed within 1 s',
        value: (1 - worst) * 100,
        limit: (1 - goal.share) * 100,
        unit: '%',
        digits: 1,
      },
      {
        what: 'memory of a webhook',
        value: peakMiB((one) => one.webhookBytes),
        limit: webhook,
        unit: 'MiB',
        digits: 0,
      },
      {
        what: 'memory of an agent',
        value: peakMiB((one) => one.agentBytes),
        limit: agent,
        unit: 'MiB',
        digits: 0,
      },
    ],
  };
}

async function measure(attack: string, wave: Attack): Promise<Measured> {
  const world = await startHostileWorld({ agents, inlineBudget: '1s' });
  try {
    // The first pods wait for code that is compiled, and for connections.
    for (let count = 0; count < 20; count += 1) await world.create('shop', [world.goodImage()]);
    const ended = performance.now() + times.durationMs;
    const pods: Promise<Decided>[] = [];
    const attacking: Promise<unknown>[] = [];
    for (let count = 0; performance.now() < ended; count += 1) {
      if ((count * times.podEveryMs) % times.attackEveryMs === 0) attacking.push(...wave(world));
      pods.push(world.create('shop', [world.goodImage()]));
      await new Promise((resolve) => setTimeout(resolve, times.podEveryMs));
    }
    const decided = await Promise.all(pods);
    await Promise.all(attacking);
    return {
      attack,
      decided,
      webhookBytes: world.webhook.peakBytes(),
      agentBytes: Math.max(...world.agents.map((agent) => agent.peakBytes())),
    };
  } finally {
    await world.close();
  }
}

function shareOf(decided: readonly Decided[]): number {
  return (
    decided.filter(({ isPlaced, tookMs }) => isPlaced && tookMs <= goal.withinMs).length / decided.length
  );
}

function rowOf({ attack, decided, webhookBytes, agentBytes }: Measured): string[] {
  const latencies = decided.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const ms = [0.5, 0.99].map((share) => percentile(latencies, share).toFixed(0));
  const memory = [webhookBytes, agentBytes].map((bytes) => (bytes / MiB).toFixed(0));
  return [attack, `${(shareOf(decided) * 100).toFixed(1)} %`, ...ms, ...memory];
}

/** Of webhook and agent in the chart, MiB. */
async function memoryLimits(): Promise<readonly number[]> {
  const values = parse(
    await readFile(new URL('../charts/archwright/values.yaml', import.meta.url), 'utf8'),
  ) as Record<'webhook' | 'agent', { resources: { limits: { memory: string } } }>;
  return [values.webhook, values.agent].map(({ resources }) => Number.parseInt(resources.limits.memory, 10));
}

if (import.meta.main) printSection(await benchHostile(process.argv[2]));
