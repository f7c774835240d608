/** The first hour's cluster: Pod Security `baseline`, plugins as on EKS, and a mirror for Docker Hub. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Programs } from '../box/programs.ts';
import { startWorld, type World } from '../helm/world.ts';
import { busyboxTar, unpackableIndex, waiting, writeLayout } from '../layout.ts';

/** The paths in README.md. */
const plugin = {
  config: '/etc/eks/image-credential-provider/config.json',
  binDir: '/etc/eks/image-credential-provider',
};
const admission = '/tmp/admission.json';

export async function startFirstHour(programs: Programs, cgroup: string): Promise<World> {
  writeFileSync(
    admission,
    JSON.stringify({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AdmissionConfiguration',
      plugins: [
        {
          name: 'PodSecurity',
          configuration: {
            apiVersion: 'pod-security.admission.config.k8s.io/v1',
            kind: 'PodSecurityConfiguration',
            defaults: { enforce: 'baseline' },
          },
        },
      ],
    }),
  );
  const world = await startWorld(programs, cgroup, {
    plugin,
    apiServerFlags: [`--admission-control-config-file=${admission}`],
  });
  trustRegistries(world);
  await mirrorDockerHub(world);
  return world;
}

/** For skopeo. */
function trustRegistries({ registries: { hosts, ca } }: World): void {
  const directory = join('/etc/containers/certs.d', hosts.public);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'ca.crt'), ca);
  writeFileSync(
    '/etc/containers/policy.json',
    JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }),
  );
}

/** `nginx:1.27` for two architectures, which only waits. The node has a Docker Hub mirror in `certs.d`. */
async function mirrorDockerHub({ programs, registries }: World): Promise<void> {
  const { public: host } = registries.hosts;
  const image = unpackableIndex(['linux/amd64', 'linux/arm64'], busyboxTar(programs.busybox), waiting);
  writeLayout('/tmp/layouts/nginx', image);
  await registries.copy('oci:/tmp/layouts/nginx:1', 'public', 'library/nginx:1.27');
  const directory = '/etc/containerd/certs.d/docker.io';
  mkdirSync(directory, { recursive: true });
  writeFileSync(
    join(directory, 'hosts.toml'),
    `[host."https://${host}"]\n  capabilities = ["pull", "resolve"]\n  ca = "/etc/containerd/certs.d/${host}/ca.crt"\n`,
  );
}
