/** The image as in a container: its layers in a folder, its configuration; QEMU for other architectures. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Architecture } from './base.ts';
import { onPath } from '../programs/cache.ts';

export interface Unpacked {
  readonly architecture: Architecture;
  readonly root: string;
  readonly entrypoint: readonly string[];
  /** `NAME=value` */
  readonly env: readonly string[];
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface Descriptor {
  readonly digest: string;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

interface Config {
  readonly os: string;
  readonly architecture: string;
  readonly config: Readonly<Record<'Env' | 'Entrypoint', readonly string[]>> & {
    readonly User: string;
    readonly Labels: Readonly<Record<string, string>>;
  };
}

/**
 * Unpacks the image of one architecture.
 * @param layout an OCI layout with one index of images
 * @param folder emptied before
 * @throws Error if the index does not have that architecture, or the image's config has another one
 */
export function unpack(layout: string, architecture: Architecture, folder: string): Unpacked {
  const blob = (digest: string): string => join(layout, 'blobs', digest.replace(':', '/'));
  const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
  type Index = { readonly manifests: readonly Descriptor[] };
  const [top] = (read(join(layout, 'index.json')) as Index).manifests;
  const { manifests } = read(blob(top?.digest ?? '')) as Index;
  const found = manifests.find(
    ({ platform }) => platform?.os === 'linux' && platform.architecture === architecture,
  );
  if (!found) throw new Error(`the index has no image for linux/${architecture}`);
  const manifest = read(blob(found.digest)) as { config: Descriptor; layers: readonly Descriptor[] };
  const { os, architecture: configured, config } = read(blob(manifest.config.digest)) as Config;
  if (os !== 'linux' || configured !== architecture)
    throw new Error(`the image for linux/${architecture} has the config of ${os}/${configured}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { digest } of manifest.layers) execFileSync('tar', ['-xf', blob(digest), '-C', folder]);
  return {
    architecture,
    root: folder,
    entrypoint: config.Entrypoint,
    env: config.Env,
    user: config.User,
    labels: config.Labels,
  };
}

/** `e_machine` of the ELF specification. */
const machines: Readonly<Record<number, Architecture>> = { 62: 'amd64', 183: 'arm64' };

/** Each program and library of the image with its architecture; a number for any other machine. */
export function machineCode({ root }: Unpacked): ReadonlyMap<string, Architecture | number> {
  const found = new Map<string, Architecture | number>();
  const head = Buffer.alloc(20);
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const file = openSync(path, 'r');
    const size = readSync(file, head, 0, head.length, 0);
    closeSync(file);
    if (size < head.length || head.toString('latin1', 0, 4) !== '\u007fELF') continue;
    const machine = head.readUInt16LE(18);
    found.set(path.slice(root.length), machines[machine] ?? machine);
  }
  return found;
}

const emulators: Readonly<Record<Architecture, string>> = {
  amd64: 'qemu-x86_64-static',
  arm64: 'qemu-aarch64-static',
};
const here: Readonly<Record<string, Architecture>> = { x64: 'amd64', arm64: 'arm64' };

/** The emulator that an architecture needs on this machine; `missing`: its name if it is not installed. */
export function emulator(architecture: Architecture): { readonly path?: string; readonly missing?: string } {
  if (here[process.arch] === architecture) return {};
  const name = emulators[architecture];
  const path = onPath(name);
  return path === undefined ? { missing: name } : { path };
}

/** The agent's state folder in the image. The test mounts a folder there, which has the emulator. */
export const mountPath = 'var/lib/archwright';

/** Root, in a separate mount namespace: a read-only root file system with the folder in it. */
const enter = `
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount --bind "$2" "$1/${mountPath}" || exit 125
shift 2
exec env -i "$@"`;

/**
 * The command that runs the program of the image with its user and environment. Needs root.
 * @param mounted folder that is mounted into it, with the emulator if one is needed
 */
export function command(
  image: Unpacked,
  mounted: string,
  args: readonly string[],
): { readonly program: string; readonly args: readonly string[] } {
  const { path } = emulator(image.architecture);
  const by = path === undefined ? [] : [`/${mountPath}/${emulators[image.architecture]}`];
  const { root, user, entrypoint, env } = image;
  const chroot = [onPath('chroot') ?? 'chroot', `--userspec=${user}`, root];
  const inside = [root, mounted, ...env, ...chroot, ...by, ...entrypoint, ...args];
  return {
    program: 'unshare',
    args: ['--mount', '--propagation', 'private', 'sh', '-c', enter, 'sh', ...inside],
  };
}
