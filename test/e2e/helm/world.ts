/** The cluster before the installation: one real node, fake nodes, registries with images, users' Secrets. */
import { startCluster } from '../cluster/harness.ts';
import { audit } from './logs.ts';
import { nodeAddress, prepareMachine, startRealNode, type PluginFlags } from './node.ts';
import type { Programs } from '../box/programs.ts';
import { namespace } from './release.ts';
import { startRegistries, type RegistryName } from './registries.ts';

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Label of the only node that can run containers. */
export const realNode = { 'e2e.example/real': 'true' };

const pushed = {
  'public/multi': 'amd64 arm64 s390x',
  'public/intel': 'amd64',
  'public/arm': 'arm64',
  'plugin/multi': 'amd64 arm64',
  'plugin/mainframe': 's390x',
  'team/arm': 'arm64',
  'team/others': 'arm64 s390x',
  'secret/multi': 'amd64 s390x',
} as const satisfies Readonly<Record<`${RegistryName}/${string}`, string>>;

/** As on the clouds: configuration and plugins in one directory. */
const defaultPlugin: PluginFlags = {
  config: '/etc/credential-provider/config.yaml',
  binDir: '/etc/credential-provider',
};

interface WorldOptions {
  readonly plugin?: PluginFlags;
  readonly apiServerFlags?: readonly string[];
}

export async function startWorld(
  programs: Programs,
  cgroup: string,
  { plugin = defaultPlugin, apiServerFlags = [] }: WorldOptions = {},
) {
  prepareMachine();
  const registries = await startRegistries(programs, plugin);
  const references = new Map<string, string>();
  const pushing = Object.entries(pushed).map(async ([name, architectures]) => {
    const [registry = '', repository = ''] = name.split('/');
    const to = `app/${repository}`;
    references.set(name, await registries.push(registry as RegistryName, to, architectures.split(' ')));
  });
  const cluster = await startCluster({
    nodes: {},
    nodeAddress,
    apiServerFlags: [
      '--enable-admission-plugins=NodeRestriction',
      '--kubelet-preferred-address-types=InternalIP',
      ...audit.flags,
      ...apiServerFlags,
    ],
  });
  await startRealNode({ programs, cluster, cgroup, labels: realNode, plugin });
  await Promise.all(pushing);
  return {
    cluster,
    registries,
    programs,
    plugin,
    image: (name: keyof typeof pushed): string => references.get(name) ?? '',
    own: { registry: registries.hosts.public, repository: 'archwright/archwright', tag: '0.1.0' },
  };
}

/** The namespace, in which agents may run, and Secrets with credentials. */
export async function prepareNamespace({ cluster, registries }: World): Promise<void> {
  await cluster.createNamespace(namespace, {
    'pod-security.kubernetes.io/enforce': 'privileged',
    'pod-security.kubernetes.io/warn': 'restricted',
  });
  const { hosts, passwords } = registries;
  const create = (name: string, to: string, type: string, stringData: object): Promise<unknown> =>
    cluster.make('Secret', `${to}/${name}`, { type, stringData });
  const file = `${hosts.team.replace(/:(\d+)$/, '_$1_')}.toml`;
  await create('team-login', namespace, 'Opaque', {
    [file]: `user = "team"\nsecret = "${passwords.team}"\n`,
  });
  const auths = { [hosts.secret]: { username: 'secret', password: passwords.secret } };
  await create('pull', 'default', 'kubernetes.io/dockerconfigjson', {
    '.dockerconfigjson': JSON.stringify({ auths }),
  });
}

/** The default of five minutes is too long for a test. A missing image is looked up again after 30 s. */
export const maxGateMs = 45_000;

export function releaseValues({ own, registries, plugin }: World): object {
  return {
    kubeletConfig: plugin,
    registryCredentials: { [registries.hosts.team]: { existingSecret: 'team-login' } },
    schedulableArchitectures: ['amd64', 'arm64', 's390x'],
    preferredArchitecture: 'amd64',
    maxGateDuration: `${maxGateMs / 1000}s`,
    ...onRealNode(own),
  };
}

export function onRealNode(own: World['own']): object {
  return {
    image: own,
    global: { nodeSelector: realNode },
    agent: { nodeSelector: realNode },
  };
}
