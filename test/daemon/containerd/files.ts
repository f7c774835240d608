/** A node's file system in a directory, and containerd's endpoints over it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import {
  createContainerdEndpoints,
  type ContainerdEndpoints,
  type ContainerdEndpointsOptions,
} from '../../../daemon/containerd/endpoints.ts';
import { reveal } from '../../../src/telemetry/secret.ts';

export type Files = Readonly<Record<string, string>>;

export const byHand = { pollMs: 600_000, debounceMs: 600_000 };

/** Writes files below a root; paths begin with a slash. */
export function write(root: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

export const configFile = '/etc/containerd/config.toml';
export const hostsFile = '/certs.d/gcr.io/hosts.toml';

/** config.toml of version 3 that names a directory of hosts. */
export const certsD =
  'version = 3\n[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/certs.d"\n';

/** Endpoints of a node with these files. */
export async function nodeWith(
  t: Test,
  files: Files,
  options: Partial<ContainerdEndpointsOptions> = {},
): Promise<{ readonly root: string; readonly containerd: ContainerdEndpoints }> {
  const root = t.testdir();
  write(root, files);
  const containerd = await createContainerdEndpoints({
    hostRoot: root,
    candidates: [configFile],
    version: '2.4.2',
    ...byHand,
    ...options,
  });
  t.teardown(() => containerd.close());
  return { root, containerd };
}

/** A node whose `config_path` has this hosts.toml for `gcr.io`. */
export const nodeWithHosts = (t: Test, hosts: string, options: Partial<ContainerdEndpointsOptions> = {}) =>
  nodeWith(t, { [configFile]: certsD, [hostsFile]: hosts }, options);

/** Endpoints in short: `https://mirror.example/v2?ns header=value`. */
export async function shown(containerd: ContainerdEndpoints, namespace: string): Promise<string[]> {
  return (await containerd.endpoints(namespace)).map(({ base, namespaceParameter, headers, httpFallback }) =>
    [
      base + (namespaceParameter ? '?ns' : '') + (httpFallback ? ' or http' : ''),
      ...headers.map(({ name, value }) => `${name}=${reveal(value)}`),
    ].join(' '),
  );
}
