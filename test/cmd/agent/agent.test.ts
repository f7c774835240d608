/** The agent as a process: `--check` on different nodes, its state file, and what its metrics reveal. */
import { existsSync, mkdirSync, writeFileSync, chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createPki } from '../../fleet/support.ts';
import { agentArgs, startAgent, type Agent } from './agent.ts';
import { files, registryWithApp, directory, dockerConfig, registry } from '../world.ts';
import { metricGroups } from '../../../scripts/docs/metrics.ts';
import { send } from '../../serving/support.ts';
import { multiArch } from '../../support/registry/content.ts';
import { createCa } from '../../support/certificates.ts';
import { configText } from '../../daemon/kubelet/support.ts';
import type { SourcePart } from '../../../src/files/source-part.ts';
import { run } from '../run.ts';
import { like } from '../../support/like.ts';

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

type Part = SourcePart & { readonly source: string };

function node(t: Test, content: Readonly<Record<string, string>> = {}): string {
  return files(t, content).directory;
}

async function check(flags: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, out, err } = await run(['agent', '--check', '--output=json', ...flags], { env });
  const { understood, parts } = JSON.parse(out || err) as { understood: boolean; parts: Part[] };
  return {
    code,
    understood,
    out,
    states: (source: string) =>
      parts.filter((part) => part.source === source).map(({ state, where }) => `${state} ${where}`),
    part: (found: string) => parts.find(({ where }) => where === found),
  };
}

t.test('on an empty node, no source exists, and no problem is reported', async (t) => {
  const { code, understood, states } = await check(['--host-root', node(t)]);
  t.equal(code, 0);
  t.equal(understood, true);
  t.strictSame(states('registry-toml'), ['absent credsDir']);
  t.strictSame(states('credential-provider'), ['absent kubeletConfig']);
  t.equal(states('docker-config').filter((state) => state.startsWith('absent')).length, 7);
  t.strictSame(states('state'), ['absent stateDir']);
  t.strictSame(states('tls'), ['absent tlsDir']);
  t.match(states('containerd').join(), 'absent /etc/containerd/config.toml');
});

t.test('the runtime of the node, and how it was found', async (t) => {
  const root = node(t, {
    'etc/crio/crio.conf': '',
    'etc/containers/registries.conf': '[[registry]]\nlocation = "a.test"\n',
    'etc/containers/registries.conf.d/x.conf': 'broken',
  });
  const { code, part, states } = await check(['--host-root', root]);
  t.equal(code, 1);
  like(t, part('cri-o'), { state: 'used' });
  t.strictSame(states('runtime'), ['used cri-o']);
  t.strictSame(states('containerd'), []);
  t.match(states('cri-o').join(), 'left-out /etc/containers/registries.conf.d/x.conf');
  const { states: ofOther } = await check(['--host-root', root, '--runtime', 'containerd']);
  t.strictSame([ofOther('runtime'), ofOther('cri-o')], [['used containerd'], []]);
});

t.test('on a node with every source, each is reported', async (t) => {
  const ca = await createCa();
  const { cert, key } = await ca.issue({ cn: 'archwright-agent', dns: ['archwright-agent'] });
  const root = node(t, {
    'var/lib/kubelet/config.json': dockerConfig('registry.corp', 'ann', 'password-of-ann'),
    'etc/containerd/config.toml':
      'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "/etc/containerd/certs.d"\n',
    'etc/containerd/certs.d/docker.io/hosts.toml':
      '[host."https://mirror.corp"]\n[host."https://mirror.corp".header]\nx-key = "password-in-header"\n',
    'etc/ssl/certs/ca-certificates.crt': ca.cert,
    'etc/plugins.yaml': configText({
      name: 'plugin',
      matchImages: ['registry.corp'],
      env: [{ name: 'TOKEN', value: 'password-in-environment' }],
    }),
    'bin/plugin': '#!/bin/sh\nexit 1\n',
  });
  for (const path of ['bin', 'bin/plugin']) chmodSync(join(root, path), 0o755);
  const own = node(t, {
    'creds/registry.corp.toml': 'user = "me"\nsecret = "password-in-toml"\n',
    'tls/tls.crt': cert,
    'tls/tls.key': key,
    'tls/ca.crt': ca.cert,
    'state/x': '',
  });
  const flags = [
    ['--host-root', root],
    ['--creds-dir', join(own, 'creds')],
    ['--kubelet-config-config', '/etc/plugins.yaml'],
    ['--kubelet-config-bin-dir', '/bin'],
    ['--state-dir', join(own, 'state')],
    ['--tls-dir', join(own, 'tls')],
    ['--proxies', 'docker.io=proxy.corp'],
    ['--insecure-registries', 'insecure.corp'],
  ].flat();
  const env = { HTTPS_PROXY: 'http://ann:password-in-proxy@proxy.corp:3128', NO_PROXY: '.corp' };
  const { code, states, part, out } = await check(flags, env);
  t.equal(code, 0, out);
  t.strictSame(states('registry-toml'), [
    `used ${join(own, 'creds')}`,
    `used ${join(own, 'creds/registry.corp.toml')}`,
  ]);
  t.equal(states('docker-config')[0], 'used /var/lib/kubelet/config.json');
  t.ok(states('containerd').includes('used /etc/containerd/config.toml'), states('containerd').join());
  t.ok(states('containerd').includes('used /etc/containerd/certs.d/docker.io'), states('containerd').join());
  like(t, part('plugin plugin'), { state: 'used', what: 'for registry.corp' });
  like(t, part('proxies'), { what: 'docker.io: proxy.corp is tried first', differs: [/containerd/] });
  like(t, part('insecureRegistries'), { what: 'insecure.corp: certificates are not verified' });
  t.strictSame(states('trust'), ['used /etc/ssl/certs/ca-certificates.crt']);
  like(t, part('HTTPS_PROXY'), { what: 'proxy.corp:3128, with a login', differs: [/systemctl/] });
  like(t, part('NO_PROXY'), { what: '.corp' });
  like(t, part(join(own, 'tls')), { what: /valid until \d{4}-/ });
  t.strictSame(states('state'), [`used ${join(own, 'state')}`]);

  const list = await run(['agent', '--check', ...flags], { env });
  t.equal(list.code, 0);
  t.equal(list.err, '');
  t.match(list.out, /^registry-toml\n {2}used {6}\/.*: files: 1\n {12}differs: the kubelet does not have/);
  t.match(list.out, /\n\ndocker-config\n {2}used {6}\/var\/lib\/kubelet\/config\.json: in use: the first/);
  const encoded = Buffer.from('ann:password-of-ann').toString('base64');
  for (const text of [out, list.out]) t.notMatch(text, new RegExp(`password-|BEGIN|${encoded}`), 'no secret');
});

t.test("paths as in Noe's chart: a file in a directory, and containerd's directory", async (t) => {
  const root = node(t, {
    'etc/eks/config.json': configText({ name: 'plugin' }),
    'etc/eks/plugin': '#!/bin/sh\nexit 1\n',
    'etc/containerd/config.toml': 'version = 2\n',
  });
  for (const path of ['etc/eks', 'etc/eks/plugin']) chmodSync(join(root, path), 0o755);
  const { states } = await check([
    `--host-root=${root}`,
    '--containerd-config-path-candidates=/none,/etc/containerd',
    '--kubelet-config-config=config.json',
    '--kubelet-config-config-dir=/etc/eks',
    '--kubelet-config-bin-dir=/etc/eks',
  ]);
  const ofPlugins = states('credential-provider');
  t.ok(ofPlugins.includes('used /etc/eks/config.json'), ofPlugins.join());
  t.ok(states('containerd').includes('used /etc/containerd/config.toml'), states('containerd').join());
});

t.test('what cannot be used is ignored, named, and sets the exit code', async (t) => {
  const root = node(t, {
    'config.json': '{"auths":',
    'creds/a.example.toml': 'user = 1',
    'plugins.yaml': 'kind: Pod',
    'etc/containerd/config.toml': 'version = ',
  });
  const wanted: readonly (readonly [source: string, flags: readonly string[], what: RegExp])[] = [
    ['docker-config', [], /not valid JSON/],
    ['registry-toml', ['--creds-dir', join(root, 'creds')], /user must be a string/],
    [
      'credential-provider',
      ['--kubelet-config-config=/plugins.yaml', '--kubelet-config-bin-dir=/bin'],
      /error decoding config/,
    ],
    ['containerd', [], /containerd would not start with it/],
    ['trust', ['--ca-files', '/nonexistent/ca.pem'], /there is no such file/],
    ['state', ['--state-dir', '/nonexistent'], /there is no such file/],
    ['tls', ['--tls-dir', root], /TLS needs tls\.crt/],
  ];
  const { code, understood, out } = await check([
    '--host-root',
    root,
    ...wanted.flatMap(([, flags]) => flags),
  ]);
  t.strictSame([code, understood], [1, false]);
  const { parts } = JSON.parse(out) as { parts: Part[] };
  const left = new Map(
    parts.flatMap((part) => (part.state === 'left-out' ? [[part.source, part.what]] : [])),
  );
  t.strictSame([...left.keys()].sort(), wanted.map(([source]) => source).sort());
  for (const [source, , what] of wanted) like(t, left.get(source), what, source);
});

t.test('a missing host root, an invalid proxy and an expired certificate are reported', async (t) => {
  const missing = await check(['--host-root', '/nonexistent']);
  t.equal(missing.code, 1);
  like(t, missing.part('/nonexistent'), { source: 'host-root', state: 'left-out' });
  const ca = await createCa();
  const { cert, key } = await ca.issue({ cn: 'archwright-agent', notAfter: new Date(Date.now() - 1000) });
  const dir = node(t, { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert });
  const flags = ['--host-root', node(t), '--tls-dir', dir];
  const { code, part } = await check(flags, { HTTPS_PROXY: 'socks5://proxy.corp' });
  t.equal(code, 1);
  like(t, part('HTTPS_PROXY'), { state: 'left-out', what: /socks5/ });
  like(t, part(dir), { state: 'left-out', what: /expired at/ });
});

t.test('control characters in names are escaped', async (t) => {
  const root = node(t, { 'creds/\u001b[31mred.toml': 'user = 1' });
  symlinkSync('/nowhere', join(root, 'creds/\u001b]0;title.toml'));
  const { code, out } = await run(['agent', '--check', `--host-root=${root}`, `--creds-dir=${root}/creds`]);
  t.equal(code, 1);
  // oxlint-disable-next-line no-control-regex
  t.notMatch(out, /[\u0000-\u0009\u000b-\u001f]/);
});
