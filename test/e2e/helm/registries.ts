/**
 * The registries of the cluster: each is a docker-registry of its own, with TLS by an authority that only the node's containerd
 * configuration names, and its own users.
 *
 * | name | who may pull |
 * | --- | --- |
 * | `public.example` | everybody; archwright's own image is here |
 * | `plugin.example` | whom the credential provider plugin of the node names |
 * | `team.example` | whom `creds/<registry>.toml` names |
 * | `secret.example` | whom a pull secret of the pod names |
 */
import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createCa } from '../../support/certificates.ts';
import {
  document,
  index,
  manifest,
  mediaTypes,
  platformOf,
  type Content,
} from '../../support/registry/content.ts';
import { tarOf } from '../kubelet/images.ts';
import { providersFile } from '../kubelet/provider.ts';
import { htpasswd } from '../registry/clients.ts';
import { startRegistry } from '../registry/servers.ts';
import { copyFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { pluginConfig, pluginDirectory } from './node.ts';
import type { Programs } from './programs.ts';

const names = ['public', 'plugin', 'team', 'secret'] as const;
export type RegistryName = (typeof names)[number];

export interface Registries {
  /** `plugin.example:40123` */
  readonly hosts: Readonly<Record<RegistryName, string>>;
  /** Of a registry where nobody listens. */
  readonly goneHost: string;
  /**
   * Pushes an image that waits for ever where it is run.
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
      // Its own readiness is looked at by address.
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
  let layouts = 0;
  return {
    hosts,
    goneHost: 'gone.example:9',
    passwords,
    copy,
    push: async (registry, repository, architectures) => {
      layouts += 1;
      const directory = `/tmp/layouts/${layouts}`;
      writeLayout(directory, waiting(programs.busybox, architectures));
      return copy(`oci:${directory}:1`, registry, `${repository}:1`);
    },
  };
}

/** The node's containerd trusts it, and so must whoever reads the node's configuration. */
function trust(host: string, ca: string): void {
  const directory = join('/etc/containerd/certs.d', host);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'ca.crt'), ca);
  writeFileSync(
    join(directory, 'hosts.toml'),
    `server = "https://${host}"\n\n[host."https://${host}"]\n  capabilities = ["pull", "resolve"]\n  ca = "ca.crt"\n`,
  );
}

/** A plugin as clouds have them, but a shell script: it needs the programs of its node. */
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

/** An image of one static program that waits. Of other architectures it is the same program: there it is never run. */
function waiting(busybox: string, architectures: readonly string[]): Content {
  const root = '/tmp/waiting';
  mkdirSync(root, { recursive: true });
  copyFileSync(busybox, join(root, 'busybox'));
  const tar = tarOf(root);
  const layer = document(mediaTypes.ociLayer, gzipSync(tar));
  const images = architectures.map((architecture) => {
    const config = document(mediaTypes.ociConfig, {
      os: 'linux',
      architecture,
      config: { Entrypoint: ['/busybox', 'sleep', '100000'] },
      rootfs: { type: 'layers', diff_ids: [document('', tar).digest] },
    });
    return { content: manifest(config, [layer]), platform: platformOf(`linux/${architecture}`) };
  });
  const [only] = images;
  return only !== undefined && images.length === 1 ? only.content : index(images);
}

function writeLayout(directory: string, top: Content): void {
  const blobs = join(directory, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const write = ({ digest, bytes, children, blobs: parts }: Content): void => {
    writeFileSync(join(blobs, digest.replace('sha256:', '')), bytes);
    for (const part of [...children, ...parts]) write(part);
  };
  write(top);
  const { mediaType, digest, bytes } = top;
  const named = {
    mediaType,
    digest,
    size: bytes.length,
    annotations: { 'org.opencontainers.image.ref.name': '1' },
  };
  writeFileSync(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }));
  writeFileSync(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}
