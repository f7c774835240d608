/**
 * Attack: a stranger on a node's network reads the agent's metrics, to learn names of tenants and of the
 * node.
 */
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { metricGroups } from '../../../scripts/docs/metrics.ts';
import { createPki } from '../../fleet/support.ts';
import { send } from '../../serving/support.ts';
import { multiArch } from '../../support/registry/content.ts';
import { agentArgs, startAgent } from './agent.ts';
import { directory, dockerConfig, registry } from '../world.ts';

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
