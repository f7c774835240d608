/** Registries with images of chosen architectures. Failures have their own, with its own circuit breaker. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { image, multiArch } from '../../../support/registry/content.ts';
import { startTestRegistry } from '../../../support/registry/server.ts';
import type { Cluster } from '../harness.ts';

export type Images = Awaited<ReturnType<typeof startImages>>;

const login = { username: 'puller', password: 'e2e-password' };

export async function startImages(cluster: Cluster) {
  const users = { [login.username]: login.password };
  const [open, closed, troubled] = await Promise.all([
    startTestRegistry(),
    startTestRegistry({ auth: { kind: 'basic', users } }),
    startTestRegistry(),
  ]);
  const registries = { public: open, private: closed, troubled };
  cluster.onStop(async () => {
    await Promise.all([open.close(), closed.close(), troubled.close()]);
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
    /** Settings with which agents and webhooks trust all of them. */
    settings: { 'ca-files': caFile },
    /** Setting with the login for the private registry, for an agent's node. */
    hostSettings: { 'host-root': hostRoot },
    /**
     * Puts an image into a registry, and returns its reference.
     * @param architectures such as `arm64`, or `windows/amd64`
     * @param isIndex default: for several architectures
     */
    push: (
      repository: string,
      architectures: readonly string[],
      where: keyof typeof registries = 'public',
      isIndex = architectures.length > 1,
    ): string => {
      const platforms = architectures.map((name) =>
        /^(?:linux|windows)\//.test(name) ? name : `linux/${name}`,
      );
      const [only = ''] = platforms;
      const options = { label: repository };
      const content = isIndex ? multiArch(platforms, options) : image(only, options);
      registries[where].push(repository, '1', content);
      return `${registries[where].host}/${repository}:1`;
    },
  };
}
