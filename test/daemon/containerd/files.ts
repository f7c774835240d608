/** A node's file system in a directory, and containerd's endpoints over it. */
import type { Test } from 'tap';
import {
  createContainerdEndpoints,
  type ContainerdEndpoints,
  type ContainerdEndpointsOptions,
} from '../../../daemon/containerd/endpoints.ts';
import { writeFiles } from '../../support/write-files.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';

export type Files = Readonly<Record<string, string>>;

export const configFile = '/etc/containerd/config.toml';
export const hostsFile = '/certs.d/gcr.io/hosts.toml';

/** config.toml of version 3 that names a directory of hosts. */
export const certsD =
  'version = 3\n[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/certs.d"\n';

/** Endpoints of a node with these files. */
export async function nodeWith(t: Test, files: Files, options: Partial<ContainerdEndpointsOptions> = {}) {
  const root = t.testdir();
  writeFiles(root, files);
  const containerd = await createContainerdEndpoints({
    hostRoot: root,
    candidates: [configFile],
    version: '2.4.2',
    ...manualRefresh,
    ...options,
  });
  t.teardown(() => containerd.close());
  return {
    root,
    containerd,
    write: async (changed: Files) => {
      writeFiles(root, changed);
      await containerd.refresh();
    },
  };
}

/** A node whose `config_path` has this hosts.toml for `gcr.io`. */
export const nodeWithHosts = (t: Test, hosts: string, options: Partial<ContainerdEndpointsOptions> = {}) =>
  nodeWith(t, { [configFile]: certsD, [hostsFile]: hosts }, options);

/** Endpoints in short: `https://mirror.example/v2?ns header=value`. */
export async function shown(containerd: ContainerdEndpoints, namespace: string): Promise<string[]> {
  return (await containerd.endpoints({ domain: namespace })).map(
    ({ base, namespaceParameter, headers, httpFallback }) =>
      [
        base + (namespaceParameter ? '?ns' : '') + (httpFallback ? ' or http' : ''),
        ...headers.map(({ name, value }) => `${name}=${reveal(value)}`),
      ].join(' '),
  );
}
