/** Facts of an agent survive its restart, without the registry. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createPki } from '../../fleet/support.ts';
import { agentArgs, startAgent, type Agent } from './agent.ts';
import { files, registryWithApp } from '../world.ts';

t.test('facts survive a restart', async (t) => {
  const { server, image } = await registryWithApp(t);
  const { directory, ca } = files(t, { ca: server.ca });
  const stateDir = join(directory, 'state');
  mkdirSync(stateDir);
  const pki = await createPki(t);
  const args = [...agentArgs(pki, stateDir), '--ca-files', ca];
  const ask = async (agent: Agent) => {
    const [facts] = await agent.post({ images: [{ image }], deadlineMs: 10_000 });
    return facts?.platforms.map(({ architecture }) => architecture);
  };
  const first = await startAgent(t, pki, args);
  t.strictSame(await ask(first), ['amd64', 'arm64']);
  t.equal(await first.stop(), 0);
  t.ok(existsSync(join(stateDir, 'image-facts.ndjson')));
  await server.close();
  const second = await startAgent(t, pki, args);
  t.equal(second.lines().find(({ count }) => count !== undefined)?.count, 1);
  t.strictSame(await ask(second), ['amd64', 'arm64']);
  t.equal(await second.stop(), 0);
});
