/** Parts of archwright as the chart runs them: processes from the bundle that the image ships, with their resident memory. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parse } from 'yaml';
import { parseQuantity } from '../../../src/names/quantity.ts';
import { until } from '../../serving/support.ts';
import { childEnv } from '../../cmd/world.ts';

export const MiB = 1024 * 1024;
/**
 * The heap that Node chooses in a container with at most 512 MiB (`v8.getHeapStatistics().heap_size_limit` is 259 MiB in a cgroup with 256
 * and with 384). Without a limit, it takes 64 MiB for each of the three young spaces.
 */
const nodeOptions = '--max-old-space-size=256 --max-semi-space-size=1';
/** A start takes a second, and a minute was measured on two cores with many other tests. */
export const patienceMs = 120_000;

type Part = 'webhook' | 'agent' | 'controller';

const values = parse(readFileSync('charts/archwright/values.yaml', 'utf8')) as Readonly<
  Record<Part, { readonly resources: { readonly limits: { readonly memory: string } } }>
>;

const bundle = mkdtempSync(join(tmpdir(), 'archwright-bundle-'));
process.on('exit', () => rmSync(bundle, { recursive: true, force: true }));

/** The program of the image, made by the first test. */
function bundled(): string {
  const entry = join(bundle, 'archwright.mjs');
  if (!existsSync(entry)) execFileSync(process.execPath, ['scripts/bundle.ts', bundle], { stdio: 'pipe' });
  return entry;
}

export interface Measured {
  /** Host and port that it serves; the controller has none. */
  readonly address: string;
  /** The URL of metrics and health. */
  readonly health: string;
  /** The limit of the chart, in bytes. */
  readonly limit: number;
  readonly pid: number;
  /** The most resident memory so far, in bytes. */
  readonly mostBytes: () => number;
  readonly log: () => string;
}

/** Starts a part as the chart does. */
export async function measured(t: Test, part: Part, flags: readonly string[]): Promise<Measured> {
  const listen = part === 'controller' ? [] : ['--listen', '127.0.0.1:0'];
  const given = [...listen, '--metrics-listen', '127.0.0.1:0', ...flags];
  const child = spawn(process.execPath, [bundled(), part, ...given], {
    env: { ...childEnv, NODE_OPTIONS: nodeOptions },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(0, MiB)));
  const found = (name: string): string | undefined =>
    new RegExp(`"(?:${name})":"https?://([^"]+)"`).exec(log)?.[1];
  await until(`${part} runs`, () => found('health') !== undefined || child.exitCode !== null, patienceMs);
  return {
    address: found('url|api') ?? log,
    health: `http://${found('health')}`,
    pid: child.pid ?? 0,
    limit: parseQuantity(values[part].resources.limits.memory) ?? 0,
    mostBytes: () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${part} ended: ${log}`);
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    },
    log: () => log,
  };
}
