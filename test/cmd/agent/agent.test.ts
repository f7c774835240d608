/** The agent as a process: its state file, and what its metrics reveal. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createPki } from '../../fleet/support.ts';
import { agentArgs, startAgent, type Agent } from './agent.ts';
import { files, registryWithApp, directory, dockerConfig, registry } from '../world.ts';
import { metricGroups } from '../../../scripts/docs/metrics.ts';
import { send } from '../../serving/support.ts';
import { multiArch } from '../../support/registry/content.ts';

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

const specs = new Map(metricGroups.flatMap(({ metrics }) => metrics.map((spec) => [spec.name, spec])));

/** Labels with any value: versions and the hash of the configuration, which reveal nothing about tenants. */
const unbounded = new Set(['archwright_build_info', 'archwright_configuration_info']);

/** Samples with a name or label that is not on the reference page. */
function undeclared(page: string): string[] {
  return page.split('\n').filter((line) => {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (line === '' || line.startsWith('#') || unbounded.has(name)) return false;
    const spec = specs.get(name) ?? specs.get(name.replace(/_(bucket|sum|count)$/, ''));
    return (
      [...labels.matchAll(/(\w+)="([^"]*)"/g)].some(
        ([, label = '', value = '']) =>
          label !== 'le' && ![...(spec?.labels?.[label] ?? []), 'other'].includes(value),
      ) || spec === undefined
    );
  });
}

// Attack: a stranger on a node's network reads them, to learn names of tenants and of the node.
t.test('metrics, health and wrong paths reveal nothing about tenants and the node', async (t) => {
  const users = { 'user-of-a-tenant': 'password-1', node: 'password-2' };
  const host = await registry(t, { auth: { kind: 'basic', users } });
  host.push('secret-team/app', 'v1', multiArch(['linux/amd64']));
  const pki = await createPki(t);
  const dir = directory(t);
  const [ca, docker] = [join(dir, 'registry.pem'), join(dir, 'config.json')];
  writeFileSync(ca, host.ca);
  writeFileSync(docker, dockerConfig('registry.of-the-node.example', 'node', users.node));
  const flags = [...agentArgs(pki, dir), '--ca-files', ca, '--node-name', 'node-of-a-tenant'];
  const agent = await startAgent(t, pki, [
    ...flags,
    '--docker-config-path-candidates',
    docker,
    '--metrics-tls',
  ]);
  const images = [
    `${host.host}/secret-team/app:v1`,
    `${host.host}/secret-team/missing:v1`,
    'registry.of-a-tenant.invalid/secret-team/app:v1',
  ].map((image) => ({ image, maxAgeMs: 0 }));
  const auths = { [host.host]: { username: 'user-of-a-tenant', password: 'password-1' } };
  const results = await agent.post({ images, auths, deadlineMs: 10_000 });
  t.equal(results.length, 3);
  t.equal(results[0]?.error, undefined);

  const url = agent.lines().find(({ health }) => health !== undefined)?.health ?? '';
  t.match(url, /^https:/);
  const trust = { ca: pki.ca.cert, servername: 'archwright-agent', agent: false as const };
  const page = (path: string) => send(`${url}${path}`, trust);
  const pages = await Promise.all(['/metrics', '/healthz', '/readyz', '/secret-team'].map(page));
  const statuses = pages.map(({ status }) => status);
  t.strictSame(statuses, [200, 200, 200, 404]);
  t.match(pages[0]?.body, /^archwright_agent_images_total\{result="ok"\} 1$/m, 'the lookups were counted');
  t.strictSame(undeclared(pages[0]?.body ?? ''), []);
  const words = ['secret-team', 'of-a-tenant', 'of-the-node', '127.0.0.1', 'password'];
  const names = [...words, `:${host.port}`, dir, pki.serverDir];
  for (const { body } of pages) for (const name of names) t.notOk(body.includes(name), name);
});
