/**
 * The registries of the cluster. Each is a docker-registry with its own user and TLS. Only the node's
 * containerd configuration trusts the authority.
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
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { createCa } from '../../support/certificates.ts';
import { busyboxTar, unpackable, unpackableIndex, waiting, writeLayout } from '../layout.ts';
import { providersFile, response } from '../kubelet/setup.ts';
import { htpasswd, startRegistry } from '../registry/servers.ts';
import type { PluginFlags } from './node.ts';
import type { Programs } from '../box/programs.ts';

const names = ['public', 'plugin', 'team', 'secret'] as const;
export type RegistryName = (typeof names)[number];

/** Docker Hub's, which `public.example` mirrors in the first hour. */
const dockerHubLimit = { 'ratelimit-limit': ['100;w=21600'], 'ratelimit-remaining': ['76;w=21600'] };

export type Registries = Awaited<ReturnType<typeof startRegistries>>;

export async function startRegistries(programs: Programs, plugin: PluginFlags) {
  const ca = await createCa('registries');
  const passwords = {} as Record<RegistryName, string>;
  /** `plugin.example:40123` */
  const hosts = {} as Record<RegistryName, string>;
  for (const name of names) {
    passwords[name] = `password of ${name}`;
    const { host } = await startRegistry({
      program: programs['docker-registry'],
      directory: join('/tmp/registries', name),
      // Its readiness is polled by address.
      tls: await ca.issue({ cn: name, dns: [`${name}.example`], ip: ['127.0.0.1'] }),
      ca: ca.cert,
      ...(name === 'public' && { headers: dockerHubLimit }),
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
  installPlugin(plugin, hosts.plugin, 'plugin', passwords.plugin);

  const copy = async (layout: string, registry: RegistryName, repositoryAndTag: string): Promise<string> => {
    const image = `${hosts[registry]}/${repositoryAndTag}`;
    const login = registry === 'public' ? [] : ['--dest-creds', `${registry}:${passwords[registry]}`];
    const words = ['--insecure-policy', 'copy', '--quiet', '--all', '--dest-tls-verify=false', ...login];
    await promisify(execFile)(programs.skopeo, [...words, layout, `docker://${image}`], { timeout: 120_000 });
    return image;
  };
  const tar = busyboxTar(programs.busybox);
  let layouts = 0;
  return {
    hosts,
    goneHost: 'gone.example:9',
    passwords,
    copy,
    ca: ca.cert,
    /** Pushes an image that only waits: a manifest (one architecture) or an index. @returns its reference */
    push: async (
      registry: RegistryName,
      repository: string,
      architectures: readonly string[],
    ): Promise<string> => {
      const directory = `/tmp/layouts/${(layouts += 1)}`;
      const platforms = architectures.map((name) => `linux/${name}`);
      const [only = '', ...more] = platforms;
      // The same program for other architectures: there it is never run.
      const image =
        more.length === 0 ? unpackable(only, tar, waiting) : unpackableIndex(platforms, tar, waiting);
      writeLayout(directory, image);
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
function installPlugin(
  { config, binDir }: PluginFlags,
  host: string,
  username: string,
  password: string,
): void {
  mkdirSync(binDir, { recursive: true });
  const provider = { matchImages: [host], defaultCacheDuration: '1m' };
  const format = extname(config) === '.json' ? 'json' : 'yaml';
  writeFileSync(config, providersFile([['e2e-login', provider]], { format }));
  const answer = response({ [host]: { username, password } }, { cacheKeyType: 'Registry' });
  writeFileSync(
    join(binDir, 'e2e-login'),
    `#!/bin/sh\ngrep -q '"image":"${host}/' || exit 3\ncat <<'END'\n${answer}\nEND\n`,
    { mode: 0o755 },
  );
}
