/**
 * The demo's registries: real HTTPS servers on loopback with the images of `examples/pods`: one public, one
 * with Bearer tokens, and a mirror of docker.io with Basic. `network.ts` connects their names to them.
 */
import type { TestCa } from '../../test/support/certificates.ts';
import {
  artifact,
  image,
  index,
  multiArch,
  platformOf,
  type Content,
} from '../../test/support/registry/content.ts';
import { startTestRegistry, type TestRegistry } from '../../test/support/registry/server.ts';
import { createIssuer } from '../../test/support/registry/tokens.ts';

/** Logins. They are valid only for the demo's registries, and still must not appear in any output. */
export const logins = {
  /** Of the pull secret in `private-with-secret.yaml`. */
  team: { username: 'demo', password: 'demo-password' },
  /** Of node-b, for the private registry. */
  nodeB: { username: 'node-b', password: 'node-b-password' },
  /** Of node-a, for the mirror. */
  nodeA: { username: 'node-a', password: 'node-a-password' },
} as const;

export interface DemoRegistry {
  readonly server: TestRegistry;
  /** For people. */
  readonly name: string;
  /** Its names; none if it is used by its address. */
  readonly domains: readonly string[];
  /** The domain in references that it serves. */
  readonly serves: string;
}

export interface Registries {
  readonly all: readonly DemoRegistry[];
  readonly mirror: DemoRegistry;
  close(): Promise<void>;
}

const mirrored = 'docker.io';

/** @param ca issues the registries' certificates */
export async function startRegistries(ca: TestCa): Promise<Registries> {
  const publicServer = await startTestRegistry({ tls: ca, names: ['public.example'] });
  const privateServer = await startTestRegistry({
    tls: ca,
    names: ['private.example'],
    auth: {
      kind: 'bearer',
      realm: 'https://private.example/token',
      service: 'private.example',
      issuer: createIssuer({ users: users(logins.team, logins.nodeB), lifetimeSeconds: 300 }),
    },
  });
  const mirrorServer = await startTestRegistry({
    tls: ca,
    auth: { kind: 'basic', users: users(logins.nodeA) },
  });

  fill(publicServer, {
    'shop/web': multiArch(['linux/amd64', 'linux/arm64', 'linux/s390x'], { label: 'web' }),
    'shop/sidecar': multiArch(['linux/amd64', 'linux/arm64'], { label: 'sidecar', flavor: 'docker' }),
    'shop/init': multiArch(['linux/amd64', 'linux/arm64'], { label: 'init' }),
    'shop/nested': nested(['linux/amd64', 'linux/arm64']),
    'shop/signed': multiArch(['linux/amd64', 'linux/arm64'], { label: 'signed', attestations: true }),
    'legacy/billing': image('linux/amd64', { label: 'billing', flavor: 'docker' }),
    'arm/only': image('linux/arm64', { label: 'arm' }),
    'models/words': artifact('application/vnd.example.words'),
  });
  fill(privateServer, { 'team/app': multiArch(['linux/amd64', 'linux/arm64'], { label: 'app' }) });
  fill(
    mirrorServer,
    { 'library/nginx': multiArch(['linux/amd64', 'linux/arm64'], { label: 'nginx' }) },
    mirrored,
  );

  const mirror = {
    server: mirrorServer,
    name: `mirror ${mirrorServer.host} for ${mirrored}`,
    domains: [],
    serves: mirrored,
  };
  const all = [
    { server: publicServer, name: 'public.example', domains: ['public.example'], serves: 'public.example' },
    {
      server: privateServer,
      name: 'private.example',
      domains: ['private.example'],
      serves: 'private.example',
    },
    mirror,
  ];
  return {
    all,
    mirror,
    close: async () => {
      await Promise.all(all.map(({ server }) => server.close()));
    },
  };
}

function users(...list: readonly { username: string; password: string }[]): Record<string, string> {
  return Object.fromEntries(list.map(({ username, password }) => [username, password]));
}

/** Every image has the tag `1`. */
function fill(server: TestRegistry, images: Readonly<Record<string, Content>>, namespace?: string): void {
  for (const [repository, content] of Object.entries(images)) {
    server.push(repository, '1', content, namespace);
  }
}

/** An index of single-platform indexes, each named with its platform: else containerd pulls only the first. */
function nested(platforms: readonly string[]): Content {
  return index(
    platforms.map((written) => {
      const platform = platformOf(written);
      return { content: index([{ content: image(written, { label: 'nested' }), platform }]), platform };
    }),
  );
}
