/** Which container runtime a node's kubelet uses, by the node's own files. */
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ifError } from '../src/async/if-error.ts';
import { FileError, listDirectory, readText, resolveInRoot, statPath } from '../src/files/read.ts';
import { defaultConfigPathCandidates } from './containerd/config/find-version.ts';
import { nodeProgram } from './kubelet/run/environment.ts';
import type { RuntimeName } from '../src/nodes/node-report.ts';
import { containerdServices } from './systemd/runtime-proxies.ts';

export interface FoundRuntime {
  readonly name: RuntimeName;
  /** How it was found, for people. */
  readonly reason: string;
}

const crioSocket = '/run/crio/crio.sock';
const containerdSocket = '/run/containerd/containerd.sock';
/** Sockets that no other program than the kubelet's containerd has: k3s and rke2, k0s, MicroK8s. */
const distributionSockets = [
  '/run/k3s/containerd/containerd.sock',
  '/run/k0s/containerd.sock',
  '/var/snap/microk8s/common/run/containerd.sock',
];
const systemDirectory = '/etc/systemd/system';
/** Files of the kubelet that name the runtime's socket, those of kubeadm first. */
const kubeletFiles = [
  '/var/lib/kubelet/instance-config.yaml',
  '/var/lib/kubelet/config.yaml',
  '/var/lib/kubelet/kubeadm-flags.env',
  '/etc/kubernetes/kubelet.conf',
];
/** The kubelet's configuration has some kilobytes. */
const maxFileBytes = 262_144;
const maxEntries = 1000;

/**
 * A node may have files of both: CRI-O beside the containerd that Docker uses, or leftovers. Then the socket
 * that the kubelet names decides, then the sockets that exist, then the enabled services, then the files of
 * containerd.
 */
export async function findRuntime(root: string): Promise<FoundRuntime> {
  const hasCrio = await exists('/etc/crio/crio.conf', root);
  const dropIns = await namesIn('/etc/crio/crio.conf.d', root);
  const hasSocket = await exists(crioSocket, root);
  if (!hasCrio && dropIns.length === 0 && !hasSocket)
    return { name: 'containerd', reason: 'there are no files of CRI-O' };
  const named = await namedByKubelet(root);
  if (named) return named;
  const distribution = await firstExisting(distributionSockets, root);
  if (distribution !== undefined) return { name: 'containerd', reason: `${distribution} exists` };
  if (hasSocket) return { name: 'cri-o', reason: `${crioSocket} exists` };
  if (await exists(containerdSocket, root))
    return { name: 'containerd', reason: `${containerdSocket} exists, and ${crioSocket} does not` };
  const wanted = await namesIn(`${systemDirectory}/multi-user.target.wants`, root);
  if (wanted.includes('crio.service') && !(await isMasked('crio.service', root)))
    return { name: 'cri-o', reason: 'crio.service is enabled' };
  for (const service of containerdServices)
    if (wanted.includes(service) && !(await isMasked(service, root)))
      return { name: 'containerd', reason: `${service} is enabled, and crio.service is not` };
  const config = await firstExisting(defaultConfigPathCandidates, root);
  if (config !== undefined)
    return { name: 'containerd', reason: `${config} exists, and crio.service is not enabled` };
  return { name: 'cri-o', reason: 'there are files of CRI-O in /etc/crio, and none of containerd' };
}

/** The runtime of the socket that the kubelet names: its arguments, its service, its files. */
async function namedByKubelet(root: string): Promise<FoundRuntime | undefined> {
  const { args } = await nodeProgram(root, new Set(['kubelet']), ['kubelet.service']);
  const command = runtimeNamed(args.join(' '));
  if (command) return { name: command, reason: 'the command line of the kubelet names its socket' };
  for (const file of kubeletFiles) {
    const text = await readText(file, { maxBytes: maxFileBytes, root }).catch(ifError(FileError, () => ''));
    const name = runtimeNamed(text.replaceAll(/(?<=^|\s)#.*/gm, ''));
    if (name) return { name, reason: `${file} names its socket` };
  }
  return undefined;
}

function runtimeNamed(text: string): RuntimeName | undefined {
  const [, socket = ''] =
    /(?<![\w.]|\w-)container-?runtime-?endpoint["']?[\s:=]+["']?([^\s"']+)/i.exec(text) ?? [];
  if (socket.includes('crio')) return 'cri-o';
  return socket.includes('containerd') ? 'containerd' : undefined;
}

/** A link to /dev/null masks a service (systemctl(1)). */
async function isMasked(service: string, root: string): Promise<boolean> {
  const dir = await resolveInRoot(root, systemDirectory).catch(ifError(FileError, () => undefined));
  if (dir === undefined) return false;
  return (await readlink(join(dir, service)).catch(() => undefined)) === '/dev/null';
}

async function firstExisting(paths: readonly string[], root: string): Promise<string | undefined> {
  for (const path of paths) if (await exists(path, root)) return path;
  return undefined;
}

/** A file that may not be examined exists. */
async function exists(path: string, root: string): Promise<boolean> {
  return await statPath(path, root).then(Boolean, () => true);
}

async function namesIn(dir: string, root: string): Promise<readonly string[]> {
  return await listDirectory(dir, { maxEntries, root }).catch(ifError(FileError, () => []));
}
