/**
 * `archwright report` of 5,000 workloads on a real control plane with kwok. Time, CPU, memory and requests of
 * the image's bundle. `npm run bench:report`. `npm run e2e:report` opens a page of that size in a browser.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Pod } from '../src/kube/api/objects.ts';
import { startCluster, type Cluster } from '../test/e2e/cluster/harness.ts';
import { startTestRegistry, type TestRegistry } from '../test/support/registry/server.ts';
import type { AuditLog } from '../test/e2e/cluster/control-plane/audit.ts';
import { auditOfArchwright, cpuMs, requestsFromNow } from './burst/cost.ts';
import {
  createNamespaces,
  createWorkloads,
  images,
  namespaces,
  nodes,
  pushImages,
  users,
  workloads,
} from './report/workloads.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const runningMs = 1_800_000;
const idlePauseMs = 5000;
/** Share of one processor for the whole control plane. */
const idleShare = 0.5;
const pageName = 'report.html';

/** As in docs/use/report.md for the controller's pod. */
const smallHeap = '--max-old-space-size=96 --max-semi-space-size=2';

const runs: Readonly<Record<string, readonly string[]>> = {
  table: [],
  [`table, ${smallHeap}`]: [],
  json: ['--output', 'json'],
  html: ['--html', pageName],
  'html, newer tags': ['--html', pageName, '--newer-tags'],
};

interface Measured {
  readonly name: string;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  readonly outputMiB: number;
  readonly clusterRequests: number;
  readonly registryRequests: number;
}

/** Takes about ten minutes, nearly all of them to create the cluster. */
export async function benchReport(): Promise<Section> {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-bench-'));
  const registry = await startTestRegistry({ auth: { kind: 'basic', users } });
  try {
    await promisify(execFile)(process.execPath, ['scripts/bundle.ts', join(directory, 'dist')], {
      cwd: root,
    });
    pushImages(registry);
    const audit = auditOfArchwright(directory);
    const cluster = await startCluster({
      nodes: Array.from({ length: nodes }, (_, index) => ({
        name: `node-${index}`,
        architecture: index % 4 === 0 ? 'arm64' : 'amd64',
        labels: { 'eks-node-viewer/instance-price': index % 4 === 0 ? '0.08' : '0.1' },
        pods: 1000,
      })),
      schedulerQps: 1000,
      controllersQps: 1000,
      endsJobs: false,
      apiServerFlags: audit.flags,
    });
    try {
      return await measureOn({ cluster, registry, directory, audit });
    } finally {
      await cluster.stop();
    }
  } finally {
    await registry.close();
    await rm(directory, { recursive: true });
  }
}

async function measureOn(options: {
  readonly cluster: Cluster;
  readonly registry: TestRegistry;
  readonly directory: string;
  readonly audit: AuditLog;
}): Promise<Section> {
  const { cluster, registry, directory, audit } = options;
  await createNamespaces(cluster, registry.host);
  const pods = await createWorkloads(cluster, registry.host);
  process.stderr.write(`${workloads} workloads created\n`);
  const watched = await cluster.watch<Pod>('/api/v1/pods');
  await watched
    .until(`${pods} pods run`, (all) => runningIn(all) === pods, runningMs)
    .finally(() => watched.close());
  process.stderr.write(`${pods} pods run\n`);
  await untilIdle(cluster);
  const caFile = join(directory, 'registry.crt');
  await writeFile(caFile, registry.ca);
  const kubeconfig = await cluster.identities.kubeconfig(
    { cn: 'archwright-report', group: 'system:masters' },
    cluster.server,
  );
  const flags = ['--kubeconfig', kubeconfig, '--ca-files', caFile];
  const measured: Measured[] = [];
  for (const [name, more] of Object.entries(runs)) {
    const requestsSince = requestsFromNow(audit);
    registry.clearRequests();
    const used = await measure(directory, name.includes(smallHeap) ? smallHeap : '', [...flags, ...more]);
    const requests = requestsSince();
    const one = {
      name,
      ...used,
      clusterRequests: requests.length,
      registryRequests: registry.requests.length,
    };
    const byKind = Object.groupBy(requests, ({ verb, resource }) => `${verb} ${resource}`);
    const counts = Object.entries(byKind).map(([kind, list = []]) => `${kind} ${list.length}`);
    process.stderr.write(`${name}: ${JSON.stringify(one)} ${counts.join(', ')}\n`);
    measured.push(one);
  }
  return sectionOf(measured, pods);
}

/** Waits until controllers have updated every workload's status, which takes a minute. */
async function untilIdle(cluster: Cluster): Promise<void> {
  const spent = async (): Promise<number> => {
    const all = await Promise.all([...cluster.pids().values()].map((pid) => cpuMs(pid)));
    return all.reduce((sum, each) => sum + each, 0);
  };
  const end = performance.now() + runningMs;
  for (let before = await spent(); performance.now() < end;) {
    await pause(idlePauseMs);
    const now = await spent();
    if (now - before < idlePauseMs * idleShare) return;
    before = now;
  }
}

function runningIn(all: ReadonlyMap<string, Pod>): number {
  return [...all.values()].filter(
    (pod) => (pod as { status?: { phase?: string } }).status?.phase === 'Running',
  ).length;
}

/** The program prints its resource use when it ends. */
const printUsage =
  'import { writeSync } from "node:fs"; process.on("exit", () => writeSync(3, JSON.stringify(process.resourceUsage())))';

async function measure(directory: string, nodeOptions: string, args: readonly string[]) {
  const started = performance.now();
  const child = spawn(
    process.execPath,
    [`--import=data:text/javascript,${printUsage}`, 'dist/archwright.mjs', 'report', ...args],
    {
      cwd: directory,
      env: { PATH: process.env['PATH'] ?? '', HOME: directory, NODE_OPTIONS: nodeOptions },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    },
  );
  let outputBytes = 0;
  child.stdout?.on('data', (chunk: Buffer) => (outputBytes += chunk.length));
  let usage = '';
  child.stdio[3]?.on('data', (chunk: Buffer) => (usage += String(chunk)));
  const [code] = (await once(child, 'close')) as [number | null];
  const seconds = (performance.now() - started) / 1000;
  // Exit code 1: some images are unknown, as intended.
  if (code !== 1) throw new Error(`archwright report ended with ${code}`);
  const page = args.includes(pageName) ? (await stat(join(directory, pageName))).size : 0;
  const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(usage) as NodeJS.ResourceUsage;
  return {
    seconds,
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
    peakMiB: maxRSS / 1024,
    outputMiB: (outputBytes + page) / 1024 ** 2,
  };
}

function sectionOf(measured: readonly Measured[], pods: number): Section {
  const rows = measured.map((one) => [
    one.name,
    one.seconds.toFixed(1),
    one.cpuSeconds.toFixed(1),
    one.peakMiB.toFixed(0),
    one.outputMiB.toFixed(1),
    String(one.clusterRequests),
    String(one.registryRequests),
  ]);
  return {
    script: 'bench:report',
    title: 'A report of a large cluster',
    text: [
      `${workloads} workloads with ${pods} pods of ${images} images in ${namespaces} namespaces on ${nodes} nodes; images are looked up by ` +
        'the program itself.',
      '',
      table(
        ['output', 's', 'CPU s', 'peak memory MiB', 'output MiB', 'requests, cluster', 'requests, registry'],
        rows,
      ),
    ].join('\n'),
    budgets: [],
  };
}

if (import.meta.main) printSection(await benchReport());
