/**
 * A burst of pods on a real control plane: each pod's wait for its node, CPU time of each process, and
 * archwright's API requests, compared with the same cluster without archwright, in one run.
 * `npm run bench:burst`.
 *
 * `PodScheduled` has times in whole seconds, so the time when a watch brings the pod and its node counts.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepareArchwright } from '../test/e2e/cluster/archwright/archwright.ts';
import { startCluster, type Cluster } from '../test/e2e/cluster/harness.ts';
import { startImages } from '../test/e2e/cluster/archwright/images.ts';
import type { AuditLog } from '../test/e2e/cluster/control-plane/audit.ts';
import { auditOfArchwright, cpuMs, requestsFromNow, type AuditedRequest } from './burst/cost.ts';
import { createBurst, deletePods, type BurstTimes } from './burst/load.ts';
import { registryMs, sidesOf, slowRegistryMs, type Side, type SideName } from './burst/sides.ts';
import { percentile } from './support/load.ts';
import { printSection, type Budget, type Section } from './support/section.ts';
import { table } from './support/table.ts';

interface Load {
  readonly name: string;
  readonly pods: number;
  readonly rate: number;
  /** Of the scheduler; its default is 50. */
  readonly schedulerQps?: number;
  /** Number of measurements of each side, in turn; the results are combined. */
  readonly rounds: number;
  /** Sides that are measured besides the three that are compared. */
  readonly more?: readonly SideName[];
}

const compared: readonly SideName[] = ['without', 'warm', 'cold'];

const loads: readonly Load[] = [
  { name: '200 at 10/s', pods: 200, rate: 10, rounds: 1 },
  { name: '200 at 50/s', pods: 200, rate: 50, rounds: 3, more: ['cold, slow registry', 'just started'] },
  { name: '1,000 at 50/s', pods: 1000, rate: 50, rounds: 1 },
  {
    name: '1,000 at 100/s',
    pods: 1000,
    rate: 100,
    schedulerQps: 1000,
    rounds: 1,
  },
];
const images = 20;
/** One of four is built for one architecture only. */
const singleArchEvery = 4;
const namespace = 'burst';
const definitions = new URL('../charts/archwright/files/crds/', import.meta.url);

interface Measured {
  readonly load: Load;
  readonly side: SideName;
  readonly fromCreation: readonly number[];
  readonly fromRequest: readonly number[];
  readonly gated: number;
  readonly pods: number;
  /** By process, milliseconds in all. */
  readonly cpu: ReadonlyMap<string, number>;
  /** Of archwright, without the Lease of its leader. */
  readonly requests: readonly AuditedRequest[];
}

/** Takes about ten minutes. `only`: a part of the names of the loads that are wanted, all without it. */
export async function benchBurst(only = ''): Promise<Section> {
  const wanted = loads.filter(({ name }) => name.includes(only));
  if (wanted.length === 0)
    throw new Error(`no load has '${only}' in its name: ${loads.map(({ name }) => name).join('; ')}`);
  const measured: Measured[] = [];
  for (const group of Object.values(Object.groupBy(wanted, ({ schedulerQps }) => String(schedulerQps)))) {
    measured.push(...(await measureOn(group ?? [])));
  }
  return sectionOf(measured);
}

/** All loads with the same scheduler, on one cluster. */
async function measureOn(group: readonly Load[]): Promise<readonly Measured[]> {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-bench-'));
  const audit = auditOfArchwright(directory);
  const [{ schedulerQps } = {}] = group;
  const cluster = await startCluster({
    nodes: ['amd64', 'arm64'].flatMap((architecture) =>
      [0, 1, 2].map((index) => ({ name: `${architecture}-${index}`, architecture, pods: 1000 })),
    ),
    ...(schedulerQps !== undefined && { schedulerQps }),
    apiServerFlags: audit.flags,
    // Status updates of kubelets would double the work, and come from other machines.
    simulatesPods: false,
  });
  try {
    const registry = await startImages(cluster);
    const [references, others] = ['app', 'other'].map((name) =>
      Array.from({ length: images }, (_, index) =>
        registry.push(`${name}-${index}`, index % singleArchEvery === 0 ? ['arm64'] : ['amd64', 'arm64']),
      ),
    ) as [string[], string[]];
    const tls = await prepareArchwright(cluster);
    // As after an installation: without them the webhook looks them up again and again.
    for (const name of await readdir(definitions))
      await cluster.applyYaml(await readFile(new URL(name, definitions), 'utf8'));
    await cluster.createNamespace(namespace);
    const sides = sidesOf({ cluster, tls, images: registry, references, others, namespace });
    // The control plane's own caches and pools get warm before anything counts.
    await createBurst({ client: cluster.client, namespace, pods: 100, rate: 50, images: references });
    await deletePods(cluster.client, namespace);
    const measured: Measured[] = [];
    for (const load of group) {
      const bySide = new Map<string, Measured[]>();
      for (let round = 0; round < load.rounds; round += 1) {
        for (const side of sides) {
          if (![...compared, ...(load.more ?? [])].includes(side.name)) continue;
          const one = await measureOnce({ cluster, audit, load, side, references });
          bySide.set(side.name, [...(bySide.get(side.name) ?? []), one]);
        }
      }
      for (const list of bySide.values()) measured.push(combined(list));
    }
    return measured;
  } finally {
    await cluster.stop();
    await rm(directory, { recursive: true });
  }
}

async function measureOnce(options: {
  readonly cluster: Cluster;
  readonly audit: AuditLog;
  readonly load: Load;
  readonly side: Side;
  readonly references: readonly string[];
}): Promise<Measured> {
  const { cluster, audit, load, side, references } = options;
  const own = await side.open();
  const pids = new Map([...own, ...cluster.pids()]);
  try {
    const requestsSince = requestsFromNow(audit);
    const before = await cpuOf(pids);
    const times: BurstTimes = await createBurst({
      client: cluster.client,
      namespace,
      pods: load.pods,
      rate: load.rate,
      images: references,
    });
    const after = await cpuOf(pids);
    const requests = requestsSince().filter(({ resource }) => resource !== 'leases');
    process.stderr.write(
      `${load.name}, ${side.name}: ${ms(average(times.fromCreation))} ms, ${times.gated} gated\n`,
    );
    const cpu = new Map([...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)]));
    return { load, side: side.name, ...times, pods: load.pods, cpu, requests };
  } finally {
    await side.close();
    await deletePods(cluster.client, namespace);
  }
}

async function cpuOf(pids: ReadonlyMap<string, number>): Promise<Map<string, number>> {
  return new Map(await Promise.all([...pids].map(async ([name, pid]) => [name, await cpuMs(pid)] as const)));
}

function combined(list: readonly Measured[]): Measured {
  const [first] = list;
  if (first === undefined) throw new TypeError('nothing was measured');
  const sorted = (of: (one: Measured) => readonly number[]): number[] =>
    list.flatMap(of).sort((a, b) => a - b);
  const cpu = new Map<string, number>();
  for (const one of list) for (const [name, ms] of one.cpu) cpu.set(name, (cpu.get(name) ?? 0) + ms);
  return {
    ...first,
    fromCreation: sorted(({ fromCreation }) => fromCreation),
    fromRequest: sorted(({ fromRequest }) => fromRequest),
    gated: list.reduce((sum, { gated }) => sum + gated, 0),
    pods: list.reduce((sum, { pods }) => sum + pods, 0),
    cpu,
    requests: list.flatMap(({ requests }) => requests),
  };
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const ms = (value: number): string => value.toFixed(1);

function sectionOf(measured: readonly Measured[]): Section {
  const timeRows = measured.map((one) => [
    one.load.name,
    one.side,
    ...[one.fromCreation, one.fromRequest].flatMap((times) => [
      ms(average(times)),
      ms(percentile(times, 0.5)),
      ms(percentile(times, 0.99)),
    ]),
    String(one.gated),
  ]);
  const programs = ['webhook', 'agent', 'controller', 'kube-apiserver', 'kube-scheduler', 'etcd'];
  const costRows = measured.map((one) => [
    one.load.name,
    one.side,
    ...programs.map((name) => {
      const spent = one.cpu.get(name);
      return spent === undefined ? '' : (spent / one.pods).toFixed(2);
    }),
    (one.requests.length / one.pods).toFixed(3),
  ]);
  return {
    script: 'bench:burst',
    title: 'A burst of pods on a real control plane',
    text: [
      `Pods of ${images} images, one of ${singleArchEvery} single-arch, created at a steady rate on etcd, kube-apiserver, kube-controller-manager, ` +
        'kube-scheduler, and nodes without kubelets, with one webhook, one controller and one agent, all on this machine. ' +
        `Registries respond after ${registryMs} ms, the slow one after ${slowRegistryMs} ms. \`warm\` has the images in memory; \`cold\` has run for a ` +
        'while without them; `just started` also has no compiled code. The load of 1,000 at 100/s has a scheduler with 1,000 QPS. ' +
        'Milliseconds until a watch brings the node of a pod: since it brought the pod (creation), and since the request was sent.',
      '',
      table(['load', 'side', 'creation avg', 'p50', 'p99', 'request avg', 'p50', 'p99', 'gated'], timeRows),
      '',
      'CPU of each process, milliseconds per pod, and requests of archwright to the API server per pod, without its Lease:',
      '',
      table(['load', 'side', ...programs, 'requests'], costRows),
      ...requestLines(measured),
    ].join('\n'),
    budgets: loads.flatMap((load) => budgetsOf(load, measured)),
  };
}

function requestLines(measured: readonly Measured[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { requests } of measured) {
    for (const { user, verb, resource } of requests) {
      const key = `${user}: ${verb} ${resource}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  if (counts.size === 0) return [];
  const list = [...counts].map(([key, count]) => `${key} (${count})`).join(', ');
  return ['', `Requests of archwright in all bursts: ${list}.`];
}

function budgetsOf(load: Load, measured: readonly Measured[]): readonly Budget[] {
  const side = (name: SideName): Measured | undefined =>
    measured.find((one) => one.load === load && one.side === name);
  const [bare, warm, cold] = [side('without'), side('warm'), side('cold')];
  if (!bare || !warm || !cold) return [];
  const ratio = (one: Measured, of: (one: Measured) => readonly number[]): number =>
    average(of(one)) / average(of(bare));
  const creation = (one: Measured): readonly number[] => one.fromCreation;
  const request = (one: Measured): readonly number[] => one.fromRequest;
  return [
    {
      what: `${load.name}: creation, warm/without`,
      value: ratio(warm, creation),
      limit: 1.1,
      unit: '×',
      digits: 2,
    },
    {
      what: `${load.name}: request, warm/without`,
      value: ratio(warm, request),
      limit: 1.1,
      unit: '×',
      digits: 2,
    },
    {
      what: `${load.name}: creation, cold/without`,
      value: ratio(cold, creation),
      limit: 2,
      unit: '×',
      digits: 2,
    },
    {
      what: `${load.name}: creation, cold, p99`,
      value: percentile(cold.fromCreation, 0.99),
      limit: 500,
      unit: 'ms',
      digits: 0,
    },
    {
      what: `${load.name}: our requests/warm pod`,
      value: warm.requests.length / warm.pods,
      limit: 0,
      unit: '',
      digits: 3,
    },
  ];
}

if (import.meta.main) printSection(await benchBurst(process.argv[2]));
