/** Attack: symbolic links in the node's files point out of the host root, into the agent's own container. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { createContainerdEndpoints } from '../../daemon/containerd/endpoints.ts';
import { createCrio } from '../../daemon/crio/runtime.ts';
import { describeTrust } from '../../src/http/tls/trust.ts';
import { directory, dockerConfig, write } from '../cmd/world.ts';
import { openNode, pluginConfig, writePlugin } from './support.ts';
import { like } from '../support/like.ts';

/** Files of the container, which must not be read, and an empty host root. */
function container(t: Test) {
  const dir = directory(t);
  const outside = join(dir, 'container');
  const files = {
    'config.json': dockerConfig('registry.test', 'ann', 'password-of-ann'),
    'evil.json': dockerConfig('evil.test', 'ann', 'password-of-ann'),
    'plugins.json': pluginConfig(['registry.test']),
    'config.toml':
      'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.mirrors."registry.test"]\nendpoint = ["https://evil.test"]\n',
    'certs.d/registry.test/hosts.toml': '[host."https://evil.test"]\n',
    'registries.conf':
      '[[registry]]\nlocation = "registry.test"\n[[registry.mirror]]\nlocation = "evil.test"\n',
    'hosts.toml': '[host."https://evil.test"]\n',
    'ca.pem': '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n',
  };
  write(outside, files);
  writePlugin(join(outside, 'bin'), { 'registry.test': { username: 'ann', password: 'password-of-ann' } });
  const root = join(dir, 'host');
  mkdirSync(root);
  return { outside, root, files };
}

const certsD = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "/certs.d"\n';

const target = { domain: 'registry.test', repository: 'registry.test/team/app', tag: 'v1' };

/** Links by their path in the host root, with their target. None hides what another one would show. */
const attacks: readonly (readonly [
  name: string,
  links: Readonly<Record<string, string>>,
  files?: Readonly<Record<string, string>>,
])[] = [
  [
    'each main file',
    {
      'var/lib/kubelet/config.json': 'config.json',
      'plugins.json': 'plugins.json',
      'etc/containerd/config.toml': 'config.toml',
      'etc/containers/registries.conf': 'registries.conf',
      'etc/ssl/certs/ca-certificates.crt': 'ca.pem',
    },
  ],
  [
    'an import, a drop-in, and directories of logins and programs',
    {
      'root/.docker': '.',
      bin: 'bin',
      'etc/containerd/more.toml': 'config.toml',
      'etc/containers/registries.conf.d/x.conf': 'registries.conf',
    },
    {
      'plugins.json': pluginConfig(['registry.test']),
      'etc/containerd/config.toml': 'version = 2\nimports = ["more.toml"]\n',
    },
  ],
  [
    'a program, a directory of hosts, and an auth file of CRI-O',
    { 'bin/plugin': 'bin/plugin', 'certs.d': 'certs.d', 'run/containers/0/auth.json': 'config.json' },
    { 'plugins.json': pluginConfig(['registry.test']), 'etc/containerd/config.toml': certsD },
  ],
  [
    'a directory of one host',
    { 'certs.d/registry.test': 'certs.d/registry.test' },
    { 'etc/containerd/config.toml': certsD },
  ],
  [
    'a hosts.toml',
    { 'certs.d/registry.test/hosts.toml': 'hosts.toml' },
    { 'etc/containerd/config.toml': certsD },
  ],
];

for (const [name, links, files = {}] of attacks) {
  t.test(`${name} behind a link, climbing or absolute, is not read`, async (t) => {
    const { outside, root } = container(t);
    write(root, files);
    for (const [index, [path, target]] of Object.entries(links).entries()) {
      const link = join(root, path);
      mkdirSync(dirname(link), { recursive: true });
      const climbing = `${'../'.repeat(path.split('/').length)}container/${target}`;
      symlinkSync(index % 2 === 0 ? climbing : join(outside, target), link);
    }
    const settings = {
      hostRoot: root,
      'kubeletConfig.config': '/plugins.json',
      'kubeletConfig.binDir': '/bin',
    };
    const { inspection } = await openNode(t, settings);
    for (const { source } of inspection.sources) {
      const found = await source.lookup('registry.test/team/app').catch(() => []);
      t.strictSame(found, [], `${source.name} gives no credential`);
    }
    const containerd = await createContainerdEndpoints({ hostRoot: root });
    t.teardown(() => containerd.close());
    const crio = await createCrio({ hostRoot: root });
    t.teardown(() => crio.close());
    for (const runtime of [containerd, crio]) {
      const endpoints = await runtime.endpoints(target).catch(() => []);
      t.notMatch(JSON.stringify(endpoints), /evil|ownCredential/, 'no endpoint, no login of the attacker');
    }
    const trusted = await describeTrust({ environment: {}, hostRoot: root });
    t.strictSame(
      trusted.filter(({ state }) => state === 'used'),
      [],
      'no trusted certificate',
    );
  });
}

t.test('links inside the root are followed, so the attacks are realistic', async (t) => {
  const { root, files } = container(t);
  write(root, Object.fromEntries(Object.entries(files).map(([path, text]) => [`real/${path}`, text])));
  for (const [path, target] of [
    ['var/lib/kubelet/config.json', 'config.json'],
    ['etc/containerd/config.toml', 'config.toml'],
    ['etc/containers/registries.conf', 'registries.conf'],
    ['run/containers/0/auth.json', 'evil.json'],
    ['etc/ssl/certs/ca-certificates.crt', 'ca.pem'],
  ] as const) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(`/real/${target}`, join(root, path));
  }
  const { inspection } = await openNode(t, { hostRoot: root });
  const [docker] = inspection.sources;
  t.equal((await docker?.source.lookup('registry.test/team/app'))?.length, 1);
  const containerd = await createContainerdEndpoints({ hostRoot: root });
  t.teardown(() => containerd.close());
  const crio = await createCrio({ hostRoot: root });
  t.teardown(() => crio.close());
  like(t, (await containerd.endpoints(target))[0], { host: 'evil.test' });
  like(t, (await crio.endpoints(target))[0], { host: 'evil.test', ownCredential: { source: 'cri-o' } });
  like(t, await describeTrust({ environment: {}, hostRoot: root }), [{ state: 'used' }]);
});
