/**
 * The registries of the cluster. Each is a docker-registry with its own user, and TLS by an authority that only the node's containerd
 * configuration trusts.
 *
 * | name | credentials |
 * | --- | --- |
 * | `public.example` | none; archwright's image is here |
 * | `plugin.example` | from the credential provider plugin of the node |
 * | `team.example` | from `creds/<registry>.toml` |
 * | `secret.example` | from a pull secret of the pod |
 */
import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createCa } from '../../support/certificates.ts';
import { busyboxTar, unpackable, unpackableIndex, waiting, writeLayout } from '../layout.ts';
import { providersFile } from '../kubelet/provider.ts';
import { htpasswd } from '../registry/clients.ts';
import { startRegistry } from '../registry/servers.ts';
import { pluginConfig, pluginDirectory } from './node.ts';
import type { Programs } from './programs.ts';

const names = ['public', 'plugin', 'team', 'secret'] as const;
export type RegistryName = (typeof names)[number];

export interface Registries {
  /** `plugin.example:40123` */
  readonly hosts: Readonly<Record<RegistryName, string>>;
  /** Of a registry that does not listen. */
  readonly goneHost: string;
  /**
   * Pushes an image that only waits.
   * @param architectures one: a single manifest; several: an index
   * @returns its reference
   */
  push(registry: RegistryName, repository: string, architectures: readonly string[]): Promise<string>;
  /** Copies an OCI layout with all its platforms. */
  copy(layout: string, registry: RegistryName, repositoryAndTag: string): Promise<string>;
  readonly passwords: Readonly<Record<RegistryName, string>>;
}

const run = promisify(execFile);
const timeoutMs = 120_000;

export async function startRegistries(programs: Programs): Promise<Registries> {
  const ca = await createCa('registries');
  const passwords = Object.fromEntries(names.map((name) => [name, `password of ${name}`])) as Record<
    RegistryName,
    string
  >;
  const hosts = {} as Record<RegistryName, string>;
  for (const name of names) {
    const { host } = await startRegistry({
      program: programs['docker-registry'],
      directory: join('/tmp/registries', name),
      // Its readiness is polled by address.
      tls: await ca.issue({ cn: name, dns: [`${name}.example`], ip: ['127.0.0.1'] }),
      ca: ca.cert,
      auth:
        name === 'public' ? { kind: 'none' } : { kind: 'htpasswd', line: htpasswd(name, passwords[name]) },
    });
    hosts[name] = host.replace('127.0.0.1', `${name}.example`);
    trust(hosts[name], ca.cert);
  }
  appendFileSync(
    '/etc/hosts',
    `127.0.0.1 ${names.map((name) => `${name}.example`).join(' ')} gone.example\n`,
  );
  installPlugin(hosts.plugin, 'plugin', passwords.plugin);

  const copy: Registries['copy'] = async (layout, registry, repositoryAndTag) => {
    const image = `${hosts[registry]}/${repositoryAndTag}`;
    const login = registry === 'public' ? [] : ['--dest-creds', `${registry}:${passwords[registry]}`];
    await run(
      programs.skopeo,
      [
        '--insecure-policy',
        'copy',
        '--quiet',
        '--all',
        '--dest-tls-verify=false',
        ...login,
        layout,
        `docker://${image}`,
      ],
      { timeout: timeoutMs },
    );
    return image;
  };
  const tar = busyboxTar(programs.busybox);
  let layouts = 0;
  return {
    hosts,
    goneHost: 'gone.example:9',
    passwords,
    copy,
    push: async (registry, repository, architectures) => {
      layouts += 1;
      const directory = `/tmp/layouts/${layouts}`;
      const platforms = architectures.map((name) => `linux/${name}`);
      const [only = ''] = platforms;
      const single = platforms.length === 1;
      // The same program for other architectures: there it is never run.
      writeLayout(
        directory,
        single ? unpackable(only, tar, waiting) : unpackableIndex(platforms, tar, waiting),
      );
      return copy(`oci:${directory}:1`, registry, `${repository}:1`);
    },
  };
}

/** Makes the node's containerd, and agents that read its configuration, trust a registry. */
function trust(host: string, ca: string): void {
  const directory = join('/etc/containerd/certs.d', host);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'ca.crt'), ca);
  writeFileSync(
    join(directory, 'hosts.toml'),
    `server = "https://${host}"\n\n[host."https://${host}"]\n  capabilities = ["pull", "resolve"]\n  ca = "ca.crt"\n`,
  );
}

/** A credential provider plugin as a shell script, which needs the programs of the node. */
function installPlugin(host: string, username: string, password: string): void {
  mkdirSync(pluginDirectory, { recursive: true });
  const providers = [{ name: 'e2e-login', matchImages: [host], defaultCacheDuration: '1m' }];
  writeFileSync(pluginConfig, providersFile(providers, { format: 'yaml' }));
  const answer = JSON.stringify({
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    kind: 'CredentialProviderResponse',
    cacheKeyType: 'Registry',
    auth: { [host]: { username, password } },
  });
  writeFileSync(
    join(pluginDirectory, 'e2e-login'),
    `#!/bin/sh\ngrep -q '"image":"${host}/' || exit 3\ncat <<'END'\n${answer}\nEND\n`,
    { mode: 0o755 },
  );
}
