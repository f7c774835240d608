/** The cluster before archwright is installed: one real node, fake nodes, registries with images, and users' Secrets. */
import type { Cluster } from '../cluster/harness.ts';
import { startCluster } from '../cluster/harness.ts';
import { auditFlags } from './logs.ts';
import { nodeAddress, prepareMachine, startRealNode } from './node.ts';
import type { Programs } from './programs.ts';
import { namespace } from './release.ts';
import { startRegistries, type Registries, type RegistryName } from './registries.ts';

export interface World {
  readonly cluster: Cluster;
  readonly registries: Registries;
  readonly programs: Programs;
  /** References of images, by registry and name. */
  readonly images: Readonly<Record<`${RegistryName}/${string}`, string>>;
  /** The image of archwright. */
  readonly own: { readonly registry: string; readonly repository: string; readonly tag: string };
}

/** Label of the node that can really run something. */
export const realNode = { 'e2e.example/real': 'true' };

const pushed: readonly (readonly [RegistryName, string, readonly string[]])[] = [
  ['public', 'multi', ['amd64', 'arm64', 's390x']],
  ['public', 'intel', ['amd64']],
  ['public', 'arm', ['arm64']],
  ['plugin', 'multi', ['amd64', 'arm64']],
  ['plugin', 'mainframe', ['s390x']],
  ['team', 'arm', ['arm64']],
  ['team', 'others', ['arm64', 's390x']],
  ['secret', 'multi', ['amd64', 's390x']],
];

export async function startWorld(programs: Programs, cgroup: string): Promise<World> {
  prepareMachine();
  const registries = await startRegistries(programs);
  const pushing = Promise.all(
    pushed.map(async ([registry, name, architectures]) => {
      const image = await registries.push(registry, `app/${name}`, architectures);
      return [`${registry}/${name}`, image] as const;
    }),
  );
  const cluster = await startCluster({
    nodes: {},
    nodeAddress,
    apiServerFlags: [
      '--enable-admission-plugins=NodeRestriction',
      '--kubelet-preferred-address-types=InternalIP',
      ...auditFlags(),
    ],
  });
  await startRealNode({ programs, cluster, cgroup, labels: realNode });
  return {
    cluster,
    registries,
    programs,
    images: Object.fromEntries(await pushing),
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
  const secret = (
    name: string,
    namespaceOf: string,
    type: string,
    data: Readonly<Record<string, string>>,
  ): Promise<unknown> =>
    cluster.create({
      apiVersion: 'v1',
      kind: 'Secret',
      type,
      metadata: { name, namespace: namespaceOf },
      stringData: data,
    });
  const file = `${hosts.team.replace(/:(\d+)$/, '_$1_')}.toml`;
  await secret('team-login', namespace, 'Opaque', {
    [file]: `user = "team"\nsecret = "${passwords.team}"\n`,
  });
  const auths = { [hosts.secret]: { username: 'secret', password: passwords.secret } };
  await secret('pull', 'default', 'kubernetes.io/dockerconfigjson', {
    '.dockerconfigjson': JSON.stringify({ auths }),
  });
}
