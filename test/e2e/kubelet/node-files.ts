/** The files of a setup on the node, and a kubelet that reads them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { startKubelet, type NodeOptions } from './node.ts';
import type { Running } from '../cluster/processes.ts';
import { installPlugins } from './recorder.ts';
import { binDir, dockerConfigs, pluginConfig, type Setup } from './setup.ts';

/** Replaces the node's files by those of the setup. */
export function prepare({ files, plugins }: Setup): void {
  for (const path of [...dockerConfigs, pluginConfig]) rmSync(path, { force: true, recursive: true });
  write(files);
  installPlugins(plugins?.behaviors ?? {});
}

export function startNodeKubelet(node: NodeOptions, { env, plugins }: Setup): Running {
  return startKubelet(node, {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', ...env },
    pluginConfig: plugins?.config,
    binDir,
  });
}

export function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode: 0o600 });
  }
}
