/** An agent with an unusable state file runs from memory. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { createPki, type Pki } from '../../fleet/support.ts';
import type { TestRegistry } from '../../support/registry/server.ts';
import { agentArgs, startAgent, type Agent } from './agent.ts';
import { files, registryWithApp } from '../world.ts';

interface World {
  readonly host: TestRegistry;
  readonly pki: Pki;
  readonly stateDir: string;
  readonly stateFile: string;
}

async function world(t: Test): Promise<World> {
  const { server: host } = await registryWithApp(t);
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

/** Looks up the image. @returns error codes, or architectures */
async function ask(agent: Agent, { host }: World): Promise<readonly string[]> {
  const images = [{ image: `${host.host}/team/app:v1` }];
  return (await agent.post({ images, deadlineMs: 10_000 })).flatMap(({ error, platforms }) =>
    error ? [error.code] : platforms.map(({ architecture }) => architecture),
  );
}

function countLines(agent: Agent, text: RegExp): number {
  return agent.lines().filter(({ msg }) => text.test(msg)).length;
}

t.test('facts survive a restart', async (t) => {
  const place = await world(t);
  const first = await start(t, place);
  t.strictSame(await ask(first, place), ['amd64', 'arm64']);
  t.equal(await first.stop(), 0);
  t.ok(existsSync(place.stateFile));
  await place.host.close();
  const second = await start(t, place);
  t.equal(second.lines().find(({ count }) => count !== undefined)?.count, 1);
  t.strictSame(await ask(second, place), ['amd64', 'arm64'], 'without the registry');
  t.equal(await second.stop(), 0);
});

t.test('an unusable state file is ignored: the agent runs from memory', async (t) => {
  const place = await world(t);
  mkdirSync(place.stateFile);
  const agent = await start(t, place);
  t.strictSame(await ask(agent, place), ['amd64', 'arm64']);
  t.equal(countLines(agent, /the state file is ignored/), 1);
  t.equal(await agent.stop(), 0);
  t.equal(countLines(agent, /cannot be written/), 1);
});
