/** Registries with images of chosen architectures: one that anybody may ask, and one for who has a login. They end with the cluster. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { image, multiArch } from '../../support/registry/content.ts';
import { startTestRegistry, type TestRegistry } from '../../support/registry/server.ts';
import type { Cluster } from './harness.ts';

export interface Images {
  readonly public: TestRegistry;
  readonly private: TestRegistry;
  /** Settings by which agents and webhooks trust both. */
  readonly settings: Readonly<Record<string, string>>;
  /** Setting by which an agent's node has the login of the private registry. */
  readonly hostSettings: Readonly<Record<string, string>>;
  /** A Secret's `.dockerconfigjson` for the private registry, base64. */
  readonly pullSecret: string;
  /**
   * Puts an image into a registry.
   * @param architectures one: a single manifest; several: an index
   * @returns its reference
   */
  push(repository: string, architectures: readonly string[], where?: 'public' | 'private'): string;
}

const login = { username: 'puller', password: 'e2e-password' };

export async function startImages(cluster: Cluster): Promise<Images> {
  const users = { [login.username]: login.password };
  const [open, closed] = await Promise.all([
    startTestRegistry(),
    startTestRegistry({ auth: { kind: 'basic', users } }),
  ]);
  cluster.onStop(async () => {
    await Promise.all([open.close(), closed.close()]);
  });
  const caFile = join(cluster.directory, 'registries.crt');
  await writeFile(caFile, `${open.ca}\n${closed.ca}`);
  const hostRoot = join(cluster.directory, 'host');
  const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64');
  const dockerConfig = JSON.stringify({ auths: { [closed.host]: { auth } } });
  await mkdir(join(hostRoot, 'var/lib/kubelet'), { recursive: true });
  await writeFile(join(hostRoot, 'var/lib/kubelet/config.json'), dockerConfig, { mode: 0o600 });
  return {
    public: open,
    private: closed,
    settings: { 'ca-files': caFile },
    hostSettings: { 'host-root': hostRoot },
    pullSecret: Buffer.from(dockerConfig).toString('base64'),
    push: (repository, architectures, where = 'public') => {
      const registry = where === 'public' ? open : closed;
      const platforms = architectures.map((architecture) => `linux/${architecture}`);
      const [only, ...more] = platforms;
      const single = only !== undefined && more.length === 0;
      const options = { label: repository };
      registry.push(repository, '1', single ? image(only, options) : multiArch(platforms, options));
      return `${registry.host}/${repository}:1`;
    },
  };
}
