/** Parts of archwright as in the chart: processes from the image's bundle, with their resident memory. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parse } from 'yaml';
import { parseQuantity } from '../../../src/names/quantity.ts';
import { childEnv } from '../../cmd/world.ts';
import { imageEnvironment } from '../../support/image-environment.ts';
import { startProgram, type Part } from '../../support/program.ts';

export const MiB = 1024 * 1024;
/**
 * Node's heap in a container with at most 512 MiB (`v8.getHeapStatistics().heap_size_limit` is 259 MiB in a
 * cgroup with 256 and with 384). Without a limit, Node takes 64 MiB for each of the three young spaces.
 */
const nodeOptions = '--max-old-space-size=256 --max-semi-space-size=1';
/** A start takes a second; on two cores with many other tests, a minute was measured. */
export const patienceMs = 120_000;

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

export type Measured = Awaited<ReturnType<typeof measured>>;

/** Starts a part as the chart does. */
export async function measured(t: Test, part: Part, flags: readonly string[]) {
  const env = { ...childEnv, ...imageEnvironment(), NODE_OPTIONS: nodeOptions };
  const started = await startProgram(part, flags, { home: childEnv.HOME, env, entry: bundled() });
  t.teardown(() => started.stop());
  /** The chart's memory limit, in bytes. */
  const limit = parseQuantity(values[part].resources.limits.memory) ?? 0;
  return { ...started, limit };
}
