/**
 * Registries with images of chosen architectures: a public one, one that needs a login, and one for failures, so that its circuit breaker
 * does not affect the others. They end with the cluster.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { image, multiArch } from '../../support/registry/content.ts';
import { startTestRegistry, type TestRegistry } from '../../support/registry/server.ts';
import type { Cluster } from './harness.ts';

export type RegistryName = 'public' | 'private' | 'troubled';

export interface Images {
  readonly public: TestRegistry;
  readonly private: TestRegistry;
  readonly troubled: TestRegistry;
  /** Settings by which agents and webhooks trust all of them. */
  readonly settings: Readonly<Record<string, string>>;
  /** Setting by which an agent's node has the login of the private registry. */
  readonly hostSettings: Readonly<Record<string, string>>;
  /** A Secret's `.dockerconfigjson` for the private registry, base64. */
  readonly pullSecret: string;
  /**
   * Puts an image into a registry.
   * @param architectures such as `arm64`, or `windows/amd64`; one: a single manifest; several: an index
   * @returns its reference
   */
  push(repository: string, architectures: readonly string[], where?: RegistryName): string;
}

const login = { username: 'puller', password: 'e2e-password' };

export async function startImages(cluster: Cluster): Promise<Images> {
  const users = { [login.username]: login.password };
  const [open, closed, troubled] = await Promise.all([
    startTestRegistry(),
    startTestRegistry({ auth: { kind: 'basic', users } }),
    startTestRegistry(),
  ]);
  const registries: Readonly<Record<RegistryName, TestRegistry>> = {
    public: open,
    private: closed,
    troubled,
  };
  cluster.onStop(async () => {
    await Promise.all(Object.values(registries).map((registry) => registry.close()));
  });
  const caFile = join(cluster.directory, 'registries.crt');
  await writeFile(caFile, `${open.ca}\n${closed.ca}\n${troubled.ca}`);
  const hostRoot = join(cluster.directory, 'host');
  const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64');
  const dockerConfig = JSON.stringify({ auths: { [closed.host]: { auth } } });
  await mkdir(join(hostRoot, 'var/lib/kubelet'), { recursive: true });
  await writeFile(join(hostRoot, 'var/lib/kubelet/config.json'), dockerConfig, { mode: 0o600 });
  return {
    ...registries,
    settings: { 'ca-files': caFile },
    hostSettings: { 'host-root': hostRoot },
    pullSecret: Buffer.from(dockerConfig).toString('base64'),
    push: (repository, architectures, where = 'public') => {
      const registry = registries[where];
      const platforms = architectures.map((name) =>
        /^(?:linux|windows)\//.test(name) ? name : `linux/${name}`,
      );
      const [only, ...more] = platforms;
      const single = only !== undefined && more.length === 0;
      const options = { label: repository };
      registry.push(repository, '1', single ? image(only, options) : multiArch(platforms, options));
      return `${registry.host}/${repository}:1`;
    },
  };
}
