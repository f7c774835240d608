/** The agent as a process whose disk is full, or whose state file cannot be used: it runs from memory. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { sendTo, type Answer } from '../daemon/support.ts';
import { createPki, type Pki } from '../fleet/support.ts';
import { until } from '../serving/support.ts';
import { multiArch } from '../support/registry/content.ts';
import type { TestRegistry } from '../support/registry/server.ts';
import { childEnv, files, registry } from './world.ts';

const program = fileURLToPath(new URL('../../cmd/archwright.ts', import.meta.url));

/** For the children of a computer with two cores and other work. */
const patienceMs = 20_000;

interface Line {
  readonly msg: string;
  readonly api?: string;
  readonly count?: number;
}

interface Agent {
  /** Asks for the image of the registry; the codes of errors, or the platforms' architectures. */
  ask(): Promise<readonly string[]>;
  lines(): readonly Line[];
  /** Ends it as Kubernetes does; gives back its exit code. */
  stop(): Promise<number | null>;
}

interface World {
  readonly host: TestRegistry;
  readonly pki: Pki;
  readonly stateDir: string;
  readonly stateFile: string;
}

async function world(t: Test): Promise<World> {
  const host = await registry(t);
  host.push('team/app', 'v1', multiArch(['linux/amd64', 'linux/arm64']));
  const stateDir = join(files(t, {}).directory, 'state');
  mkdirSync(stateDir);
  return { host, pki: await createPki(t), stateDir, stateFile: join(stateDir, 'image-facts.ndjson') };
}

/** @param limits shell commands before the program starts, such as `ulimit -f 0` */
async function start(t: Test, { host, pki, stateDir }: World, limits = ':'): Promise<Agent> {
  const flags = ['--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0', '--drain-time', '0s'];
  const ca = join(dirname(stateDir), 'registry.pem');
  writeFileSync(ca, host.ca);
  flags.push('--tls-dir', pki.serverDir, '--state-dir', stateDir, '--ca-files', ca);
  const script = `${limits}; exec "$0" "$@"`;
  const child = spawn('/bin/sh', ['-c', script, process.execPath, program, 'agent', ...flags], {
    env: childEnv,
  });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const lines = (): Line[] =>
    log
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  const listening = (): string | undefined => lines().find(({ api }) => api !== undefined)?.api;
  await until('the agent listens', () => listening() !== undefined, patienceMs);
  return {
    ask: async () => {
      const images = [{ image: `${host.host}/team/app:v1`, pullPolicy: 'IfNotPresent' }];
      const body = JSON.stringify({ images, deadlineMs: 10_000 });
      const { json } = await sendTo(listening() ?? '', pki, 'POST', '/v1/facts', {
        headers: { 'content-type': 'application/json' },
        body,
      });
      return (json as Answer).results.flatMap(({ error, platforms }) =>
        error ? [error.code] : platforms.map(({ architecture }) => architecture),
      );
    },
    lines,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

function said(agent: Agent, text: RegExp): number {
  return agent.lines().filter(({ msg }) => text.test(msg)).length;
}

t.test('what was known survives a restart', async (t) => {
  const place = await world(t);
  const first = await start(t, place);
  t.strictSame(await first.ask(), ['amd64', 'arm64']);
  t.equal(await first.stop(), 0);
  t.ok(existsSync(place.stateFile));
  await place.host.close();
  const second = await start(t, place);
  t.equal(second.lines().find(({ count }) => count !== undefined)?.count, 1);
  t.strictSame(await second.ask(), ['amd64', 'arm64'], 'with the registry gone');
  t.equal(await second.stop(), 0);
});

t.test('a disk on which not one byte has room', async (t) => {
  const place = await world(t);
  // What tap adds to each process writes files of its own.
  const agent = await start(t, place, 'unset NODE_OPTIONS; ulimit -f 0');
  t.strictSame(await agent.ask(), ['amd64', 'arm64']);
  t.equal(await agent.stop(), 0);
  t.equal(said(agent, /state file cannot be written; going on from memory/), 1);
  t.notOk(existsSync(place.stateFile));
});

const unusable: readonly (readonly [what: string, make: (path: string) => void])[] = [
  ['a directory', (path) => mkdirSync(path)],
  ['garbage', (path) => writeFileSync(path, Buffer.from([0, 0xff, 0xfe, 10, 123]))],
  ['of another program', (path) => writeFileSync(path, '{"version":99}\n')],
];

for (const [what, make] of unusable) {
  t.test(`a state file that is ${what}`, async (t) => {
    const place = await world(t);
    make(place.stateFile);
    const agent = await start(t, place);
    t.strictSame(await agent.ask(), ['amd64', 'arm64']);
    t.equal(said(agent, /the state file is ignored/), 1);
    t.equal(await agent.stop(), 0);
    if (what === 'a directory') t.equal(said(agent, /cannot be written/), 1);
    else t.match(readFileSync(place.stateFile, 'utf8'), /team\/app:v1/, 'it is replaced');
  });
}

t.test('a state directory that is missing', async (t) => {
  const place = await world(t);
  const agent = await start(t, { ...place, stateDir: join(place.stateDir, 'none') });
  t.strictSame(await agent.ask(), ['amd64', 'arm64']);
  t.equal(await agent.stop(), 0);
  t.equal(said(agent, /cannot be written; going on from memory/), 1);
});
