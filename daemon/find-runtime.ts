/** Which container runtime a node's kubelet uses, by the node's own files. */
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ifError } from '../src/async/if-error.ts';
import { FileError, resolveInRoot } from '../src/files/read.ts';
import type { RuntimeName } from '../src/nodes/node-report.ts';
import { defaultConfigPathCandidates } from './containerd/config/rules.ts';
import { nodeProgram } from './kubelet/run/environment.ts';
import { firstExisting, NodeFiles, orBroken } from './node-files.ts';
import { containerdServices } from './systemd/runtime-proxies.ts';
import { ConfigFileError } from './toml.ts';

export interface FoundRuntime {
  readonly name: RuntimeName;
  /** How it was found, for people. */
  readonly reason: string;
}

const crioSocket = '/run/crio/crio.sock';
const sockets = [
  // No other program than the kubelet's containerd has these: k3s and rke2, k0s, MicroK8s.
  '/run/k3s/containerd/containerd.sock',
  '/run/k0s/containerd.sock',
  '/var/snap/microk8s/common/run/containerd.sock',
  crioSocket,
  '/run/containerd/containerd.sock',
];
const services = ['crio.service', ...containerdServices];
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
  const files = new NodeFiles(root);
  const crioFiles = [crioSocket, '/etc/crio/crio.conf'];
  if (
    !(await firstExisting(crioFiles, files)) &&
    (await namesIn('/etc/crio/crio.conf.d', files)).length === 0
  )
    return { name: 'containerd', reason: 'there are no files of CRI-O' };
  const named = await namedByKubelet(files);
  if (named) return named;
  const socket = await firstExisting(sockets, files);
  if (socket !== undefined) return { name: runtimeNameOf(socket), reason: `${socket} exists` };
  const wanted = await namesIn(`${systemDirectory}/multi-user.target.wants`, files);
  for (const service of services.filter((each) => wanted.includes(each)))
    if (!(await isMasked(service, root)))
      return { name: runtimeNameOf(service), reason: `${service} is enabled` };
  const config = await firstExisting(defaultConfigPathCandidates, files);
  if (config !== undefined)
    return { name: 'containerd', reason: `${config} exists, and crio.service is not enabled` };
  return { name: 'cri-o', reason: 'there are files of CRI-O in /etc/crio, and none of containerd' };
}

function runtimeNameOf(name: string): RuntimeName {
  return name.includes('crio') ? 'cri-o' : 'containerd';
}

/** The runtime of the socket that the kubelet names: its arguments, its service, its files. */
async function namedByKubelet(files: NodeFiles): Promise<FoundRuntime | undefined> {
  const { args } = await nodeProgram(files.root, new Set(['kubelet']), ['kubelet.service']);
  const command = runtimeNamed(args.join(' '));
  if (command) return { name: command, reason: 'the command line of the kubelet names its socket' };
  for (const file of kubeletFiles) {
    const text = await orBroken(file, () => files.text(file, maxFileBytes));
    const name =
      text instanceof ConfigFileError ? undefined : runtimeNamed(text?.replaceAll(/(?<=^|\s)#.*/gm, ''));
    if (name) return { name, reason: `${file} names its socket` };
  }
  return undefined;
}

function runtimeNamed(text = ''): RuntimeName | undefined {
  const [, socket = ''] =
    /(?<![\w.]|\w-)container-?runtime-?endpoint["']?[\s:=]+["']?([^\s"']+)/i.exec(text) ?? [];
  return /crio|containerd/.test(socket) ? runtimeNameOf(socket) : undefined;
}

/** A link to /dev/null masks a service (systemctl(1)). */
async function isMasked(service: string, root: string): Promise<boolean> {
  const dir = await resolveInRoot(root, systemDirectory).catch(ifError(FileError, () => undefined));
  return dir !== undefined && (await readlink(join(dir, service)).catch(() => undefined)) === '/dev/null';
}

async function namesIn(dir: string, files: NodeFiles): Promise<readonly string[]> {
  const names = await orBroken(dir, () => files.names(dir, maxEntries));
  return names instanceof ConfigFileError ? [] : names;
}
