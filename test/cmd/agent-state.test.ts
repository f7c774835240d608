/** An agent whose disk is full, or whose state file cannot be used: it runs from memory. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { createPki, type Pki } from '../fleet/support.ts';
import { multiArch } from '../support/registry/content.ts';
import type { TestRegistry } from '../support/registry/server.ts';
import { agentArgs, followAgent, startAgent, type Agent } from './agent.ts';
import { childEnv, files, program, registry } from './world.ts';

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

function argsOf({ host, pki, stateDir }: World): string[] {
  const ca = join(dirname(stateDir), 'registry.pem');
  writeFileSync(ca, host.ca);
  return [...agentArgs(pki, stateDir), '--ca-files', ca];
}

function start(t: Test, place: World): Promise<Agent> {
  return startAgent(t, place.pki, argsOf(place));
}

/** As a process; what tap and the compile cache add to it would write files of their own. */
async function startWithFullDisk(t: Test, place: World): Promise<Agent> {
  const script = 'unset NODE_OPTIONS NODE_COMPILE_CACHE; ulimit -f 0; exec "$0" "$@"';
  const child = spawn('/bin/sh', ['-c', script, process.execPath, program, ...argsOf(place)], {
    env: childEnv,
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  return followAgent(place.pki, {
    log: () => log,
    end: () => child.kill('SIGTERM'),
    ended: new Promise<number | null>((resolve) => child.on('close', resolve)),
  });
}

/** Asks for the image of the registry; the codes of errors, or the architectures of the platforms. */
async function ask(agent: Agent, { host }: World): Promise<readonly string[]> {
  const images = [{ image: `${host.host}/team/app:v1`, pullPolicy: 'IfNotPresent' }];
  return (await agent.post({ images, deadlineMs: 10_000 })).flatMap(({ error, platforms }) =>
    error ? [error.code] : platforms.map(({ architecture }) => architecture),
  );
}

function said(agent: Agent, text: RegExp): number {
  return agent.lines().filter(({ msg }) => text.test(msg)).length;
}

t.test('what was known survives a restart', async (t) => {
  const place = await world(t);
  const first = await start(t, place);
  t.strictSame(await ask(first, place), ['amd64', 'arm64']);
  t.equal(await first.stop(), 0);
  t.ok(existsSync(place.stateFile));
  await place.host.close();
  const second = await start(t, place);
  t.equal(second.lines().find(({ count }) => count !== undefined)?.count, 1);
  t.strictSame(await ask(second, place), ['amd64', 'arm64'], 'with the registry gone');
  t.equal(await second.stop(), 0);
});

t.test('a disk on which not one byte has room', async (t) => {
  const place = await world(t);
  const agent = await startWithFullDisk(t, place);
  t.strictSame(await ask(agent, place), ['amd64', 'arm64']);
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
    t.strictSame(await ask(agent, place), ['amd64', 'arm64']);
    t.equal(said(agent, /the state file is ignored/), 1);
    t.equal(await agent.stop(), 0);
    if (what === 'a directory') t.equal(said(agent, /cannot be written/), 1);
    else t.match(readFileSync(place.stateFile, 'utf8'), /team\/app:v1/, 'it is replaced');
  });
}

t.test('a state directory that is missing', async (t) => {
  const place = await world(t);
  const agent = await start(t, { ...place, stateDir: join(place.stateDir, 'none') });
  t.strictSame(await ask(agent, place), ['amd64', 'arm64']);
  t.equal(await agent.stop(), 0);
  t.equal(said(agent, /cannot be written; going on from memory/), 1);
});
