/**
 * An idle agent beside a bare `node:https` server: memory, and the time from process start until ready, from
 * the source and from the image's bundle, with the variables of the image and of the chart.
 * `npm run bench:agent`, which makes the bundle first.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, mkdir, readFile, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createCa, issueTls } from '../test/support/certificates.ts';
import { imageEnvironment } from '../test/support/image-environment.ts';
import { median } from './support/load.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const programs = {
  source: ['cmd/archwright.ts', {}],
  bundle: ['dist/archwright.mjs', imageEnvironment()],
  // As in `charts/archwright/templates/agent/daemonset.yaml`.
  'bundle, as in the chart': [
    'dist/archwright.mjs',
    { ...imageEnvironment(), NODE_OPTIONS: '--max-semi-space-size=1' },
  ],
} as const;
const starts = 5;
const readyLimitMs = 20_000;
const readyPauseMs = 10;
/** After this time an agent without requests is idle. */
const idleMs = 3000;
/** Resident memory as a multiple of the bare server's. */
const budgets = { resident: 1.25, startSeconds: 1 };
const bareServer = `
  import { createServer } from 'node:https';
  import { readFileSync } from 'node:fs';
  const [key, cert] = ['tls.key', 'tls.crt'].map((name) => readFileSync(process.argv[1] + '/' + name));
  createServer({ key, cert }, (request, response) => response.end()).listen(0, '127.0.0.1');`;

interface Measured {
  readonly program: string;
  readonly readySeconds: number;
  readonly residentMiB: number;
}

/** Takes about half a minute. */
export async function benchAgent(): Promise<Section> {
  await promisify(execFile)(process.execPath, [join(root, 'scripts/bundle.ts')], { cwd: root });
  const dir = await mkdtemp(join(tmpdir(), 'archwright-bench-'));
  try {
    const tlsDir = await issueTls(await createCa(), join(dir, 'tls'), {
      cn: 'archwright-agent',
      dns: ['archwright-agent'],
    });
    const hostRoot = join(dir, 'host');
    await mkdir(hostRoot);
    const measured: Measured[] = [];
    for (const [program, [path, env]] of Object.entries(programs)) {
      const runs = [];
      for (let run = 0; run < starts; run += 1)
        runs.push(await startOnce(join(root, path), env, tlsDir, hostRoot));
      measured.push({
        program,
        readySeconds: median(runs.map(({ readySeconds }) => readySeconds)),
        residentMiB: median(runs.map(({ residentMiB }) => residentMiB)),
      });
    }
    return section(measured, await bareMiB(tlsDir));
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function bareMiB(tlsDir: string): Promise<number> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', bareServer, tlsDir], {
    env: { ...imageEnvironment(), NODE_OPTIONS: '--max-semi-space-size=1' },
    stdio: 'inherit',
  });
  await pause(idleMs);
  const resident = await residentMiB(child.pid ?? 0);
  child.kill('SIGKILL');
  return resident;
}

function section(measured: readonly Measured[], bare: number): Section {
  return {
    script: 'bench:agent',
    title: 'An idle agent',
    text: [
      `Medians of ${starts} starts.`,
      '',
      table(
        ['program', 'start to ready s', 'resident MiB'],
        measured.map(({ program, readySeconds, residentMiB }) => [
          program,
          readySeconds.toFixed(2),
          residentMiB.toFixed(1),
        ]),
      ),
      '',
      `A bare \`node:https\` server in the same run: ${bare.toFixed(1)} MiB.`,
    ].join('\n'),
    budgets: measured.flatMap(({ program, readySeconds, residentMiB }) => [
      {
        what: `an idle agent, resident (${program})`,
        value: residentMiB / bare,
        limit: budgets.resident,
        unit: '× a bare server',
        digits: 2,
      },
      {
        what: `start to ready (${program})`,
        value: readySeconds,
        limit: budgets.startSeconds,
        unit: 's',
        digits: 2,
      },
    ]),
  };
}

async function startOnce(
  program: string,
  variables: Readonly<Record<string, string>>,
  tlsDir: string,
  hostRoot: string,
): Promise<Pick<Measured, 'readySeconds' | 'residentMiB'>> {
  const flags = {
    listen: '127.0.0.1:0',
    'metrics-listen': '127.0.0.1:0',
    'tls-dir': tlsDir,
    'host-root': hostRoot,
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const started = performance.now();
  const child = spawn(process.execPath, [program, 'agent', ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...variables },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    await ready(`${await healthUrl(child)}/readyz`);
    const readySeconds = (performance.now() - started) / 1000;
    await pause(idleMs);
    return { readySeconds, residentMiB: await residentMiB(child.pid ?? 0) };
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
  }
}

/** From the line of its log with its address. */
async function healthUrl(child: ChildProcess): Promise<string> {
  if (!child.stderr) throw new TypeError('its log is not read');
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    const url = /"health":"([^"]+)"/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return url;
  }
  throw new Error(`the agent ended: ${lines.join('\n')}`);
}

async function ready(url: string): Promise<void> {
  const end = performance.now() + readyLimitMs;
  while ((await statusOf(url)) !== 200) {
    if (performance.now() > end) throw new Error(`not ready within ${readyLimitMs} ms: ${url}`);
    await pause(readyPauseMs);
  }
}

function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}

/** The kernel's figures of another process; Linux only. */
async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

if (import.meta.main) printSection(await benchAgent());
